"""Files of flows that only a worker has, as the server asks for them."""

from __future__ import annotations

from typing import Protocol

from penstock.control.fleet.progress import flow_directory
from penstock.control.registry.documents import Documents
from penstock.engine.delivery.sink_states import Standing, read_standings
from penstock.engine.runtime.flow_log_reader import Level, LogLine, LogPlace, LogReader
from penstock.settings import Settings


class FlowFiles(Protocol):
    """The ledger and the log of flows."""

    def standings(self, kind: str, name: str, sinks: list[str]) -> dict[str, Standing]:
        """The states of the sinks of a flow."""

    def log(
        self, kind: str, name: str, level: Level, place: LogPlace | None
    ) -> tuple[list[LogLine], LogPlace]:
        """The lines of a log from a place on, and the place where they end."""


class FilesHere:
    """The files of flows in the home of this process."""

    def __init__(self, settings: Settings, documents: Documents) -> None:
        self._settings, self._documents = settings, documents

    def standings(self, kind: str, name: str, sinks: list[str]) -> dict[str, Standing]:
        """The states of the sinks of a flow, from its ledger."""
        return read_standings(flow_directory(self._settings, self._documents.get(kind, name)), sinks)

    def log(
        self, kind: str, name: str, level: Level, place: LogPlace | None
    ) -> tuple[list[LogLine], LogPlace]:
        """The lines of a log from a place on, and the place where they end."""
        directory = flow_directory(self._settings, self._documents.get(kind, name))
        reader = LogReader(directory, level, place or (None, 0))
        return reader.look(), reader.place
