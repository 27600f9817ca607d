"""A table as a Spark streaming source in Python: planned by its commits, read file by file."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.connectors.tables.commits import Commits, DataFile, Offset, Plan, beginning
from penstock.frames.faults import Fault
from penstock.frames.python_source import settle
from penstock.streams.casting import convert

BATCH_EVENTS = 64 * 1024
"""Number of events that are decoded at a time."""


class Files(InputPartition):
    """The files of a task."""

    def __init__(self, files: list[DataFile]) -> None:
        self.files = files


class TableDataSource(DataSource):
    """A table as a Spark data source. Its options are `reading`, and `secret`, which logs must not show."""

    made: ClassVar[type[TableReader]]
    """The class that reads the table."""

    def schema(self) -> str:
        return str(self._reading()["schema"])

    def streamReader(self, schema: Any) -> TableReader:
        from pyspark.sql.pandas.types import to_arrow_schema

        return self.made(self._reading(), to_arrow_schema(schema, timezone="UTC"))

    def _reading(self) -> dict[str, Any]:
        return {**json.loads(self.options["reading"]), **json.loads(self.options["secret"])}


class TableReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table commit by commit."""

    def __init__(self, reading: Mapping[str, Any], schema: pa.Schema) -> None:
        self.reading, self.wanted = reading, schema
        self.until: int | None = None
        self.bounded = False
        self._plan: Plan | None = None
        self._at: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan": None}  # tasks only read, and don't plan

    @abstractmethod
    def commits(self) -> Commits:
        """The commits of the table."""

    @abstractmethod
    def batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""

    @property
    def plan(self) -> Plan:
        """The plan of micro-batches."""
        if self._plan is None:
            self._plan = Plan(self.commits(), self.reading["max_events"], self.reading["task_events"])
        return self._plan

    def initialOffset(self) -> Offset:
        return beginning(self.plan.commits, self.reading["position"])

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.reading["max_events"])

    def prepareForTriggerAvailableNow(self) -> None:
        self.until, self.bounded = self.plan.commits.newest(), True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        if not self.bounded:
            self.plan.commits.refresh()
        elif self.until is None:
            return start
        self._at = self.plan.latest(start, self.until)
        return self._at

    def reportLatestOffset(self) -> Offset | None:
        """The last planned offset with the backlog after it in events, for Spark's progress report."""
        if self._at is None or (behind := self.plan.behind(self._at)) is None:
            return None
        return {**self._at, "behind": behind}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [Files(files) for files in self.plan.between(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Files)
        settle()
        for file in partition.files:
            for batch in self.batches(file):
                yield conformed(batch, self.wanted)


def conformed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Rows with the wanted columns; columns that a file doesn't have are null.

    Raises a `Fault` if a value can't be converted without loss.
    """
    have = {name.lower(): i for i, name in enumerate(batch.schema.names)}
    columns = []
    for field in wanted:
        at = have.get(field.name.lower())
        if at is None:
            columns.append(pa.nulls(len(batch), field.type))
            continue
        column = batch.column(at)
        made, lost = convert(column, field.type)
        if lost is not None:
            message = f"'{field.name}' is {column.type} in a file of the table, but {field.type} here"
            raise Fault("wrong_type", message)
        columns.append(made)
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
