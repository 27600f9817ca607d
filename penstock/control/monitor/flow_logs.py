"""The logs of flows: written by workers, read by the server."""

from __future__ import annotations

from typing import Protocol

from penstock.control.documents.flow_states import flow_of
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory
from penstock.control.questions.flow_files import FlowFiles
from penstock.engine.runtime.flow_log_reader import Level, LogLine, LogPlace, LogReader
from penstock.errors import Unavailable


class FlowLogReader(Protocol):
    """Reads a log from its oldest line on, each line once."""

    @property
    def gone(self) -> bool:
        """Whether the log was removed."""

    def look(self) -> list[LogLine]:
        """The lines since the last call."""


class LogElsewhere:
    """Reads the log of a flow that is stored by a worker on another machine."""

    gone = False

    def __init__(self, files: FlowFiles, kind: str, name: str, level: Level) -> None:
        self._files, self._which = files, (kind, name, level)
        self._place: LogPlace | None = None

    def look(self) -> list[LogLine]:
        """The lines since the last call; none while the worker is not responding."""
        try:
            lines, self._place = self._files.log(*self._which, self._place)
        except Unavailable:
            return []
        return lines


def reader_of(service: Service, kind: str, name: str, level: Level) -> FlowLogReader:
    """A reader of a flow's log; Conflict if the document has no flow."""
    record = service.get(kind, name)
    flow_of(record)
    keeper = service.keeper_of(record)
    if keeper is not None:
        return LogElsewhere(service.rpc.files(keeper), kind, record.id, level)
    return LogReader(flow_directory(service.settings, record), level)
