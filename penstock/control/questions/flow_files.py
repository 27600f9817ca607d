"""Files of flows that only a worker has, as requested by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.control.fleet.progress import flow_directory, forget_checkpoints
from penstock.control.registry.documents import Documents
from penstock.engine.delivery.sink_states import Standing, read_standings
from penstock.engine.runtime.batch_log import BatchLine, read_batches
from penstock.engine.runtime.flow_log_reader import Level, LogLine, LogPlace, LogReader
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FlowFiles(Protocol):
    """The ledger, the log and the batches of flows."""

    def standings(self, kind: str, name: str, sinks: list[str]) -> dict[str, Standing]:
        """The states of the sinks of a flow."""

    def log(
        self, kind: str, name: str, level: Level, place: LogPlace | None
    ) -> tuple[list[LogLine], LogPlace]:
        """The lines of a log from a position on, and the position after them."""

    def batches(self, kind: str, name: str, limit: int) -> list[BatchLine]:
        """The last batches of a flow, newest first."""

    def forget_checkpoints(self, kind: str, name: str) -> None:
        """Remove the checkpoints of a flow that is not running."""


class FilesHere:
    """The files of flows in the home of this process. Without Spark, only files on local disks."""

    def __init__(self, settings: Settings, documents: Documents, spark: SparkSession | None = None) -> None:
        self._settings, self._documents, self._spark = settings, documents, spark

    def standings(self, kind: str, name: str, sinks: list[str]) -> dict[str, Standing]:
        """The states of the sinks of a flow, from its ledger."""
        return read_standings(flow_directory(self._settings, self._documents.get(kind, name)), sinks)

    def log(
        self, kind: str, name: str, level: Level, place: LogPlace | None
    ) -> tuple[list[LogLine], LogPlace]:
        """The lines of a log from a position on, and the position after them."""
        directory = flow_directory(self._settings, self._documents.get(kind, name))
        reader = LogReader(directory, level, place or (None, 0))
        return reader.look(), reader.place

    def batches(self, kind: str, name: str, limit: int) -> list[BatchLine]:
        """The last batches of a flow, newest first."""
        return read_batches(flow_directory(self._settings, self._documents.get(kind, name)), limit)

    def forget_checkpoints(self, kind: str, name: str) -> None:
        """Remove the checkpoints of a flow that is not running."""
        forget_checkpoints(self._settings, self._documents.get(kind, name), self._spark)
