"""The base of sources for table formats: their fields, and the frame that reads a table as a stream."""

from __future__ import annotations

import json
import math
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field

from penstock.connectors.base import Source
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.frames.faults import fault_in
from penstock.frames.python_source import inflight, register
from penstock.frames.site import Site
from penstock.specs.policies import Batch
from penstock.specs.positions import parse_position
from penstock.sql.schemas import parse_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.tables.reader import TableDataSource

    DataSourceClass: TypeAlias = type[TableDataSource]

VERSION = re.compile(r"version:[0-9]{1,19}")

UNAVAILABLE = re.compile(r"penstock\.errors\.(?:Unavailable|Invalid|Retryable): ([^\n]+)")
"""Matches an error of the reader in the output of its process."""

HINTS = {
    "gap": "start over with position: earliest, and keep the history of the table longer",
    "changed": "set changes: skip to read only appended rows, or start over to read the current table",
    "unknown_version": "use a version in the history of the table",
    "wrong_type": "declare the column in 'schema' with the type of the table",
    "unsupported_table": "use another connector, or disable the feature on the table",
}
PATHS = {"gap": "position", "unknown_version": "position", "changed": "changes", "wrong_type": "schema"}


def _checked(text: str) -> str:
    if VERSION.fullmatch(text):
        return text
    if text.startswith("offset:"):
        raise ValueError("tables have versions, not offsets: use version:N")
    parse_position(text)
    return text


TablePosition = Annotated[str, AfterValidator(_checked)]


class TableSource(Source):
    """A source that reads the commits of a table."""

    position: TablePosition = Field(
        default="earliest",
        description="Start position: earliest (the current table, then new commits), latest, version:N "
        "(that commit and those after it), or time:ISO 8601 (commits since then).",
    )
    changes: Literal["fail", "skip"] = Field(
        default="fail",
        description="Handling of a commit that deletes or rewrites rows: fail the pipeline, or skip the "
        "commit.",
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark DDL; absent: those of the table when the document is saved.",
    )
    poll_ms: int = Field(default=1_000, ge=10, description="Interval between checks for new commits.")
    finite: bool = Field(
        default=False, description="Stop as `completed` when everything present at the start has been read."
    )

    guarantee: ClassVar = "exactly-once"
    batch_fields: ClassVar = frozenset({"max_events", "max_inflight"})

    @abstractmethod
    def table_columns(self) -> pa.Schema:
        """The current columns of the table; raises `Invalid` if there is no table."""

    @abstractmethod
    def reading(self) -> dict[str, Any]:
        """The settings with which the reader finds the table."""

    @abstractmethod
    def secrets(self) -> dict[str, Any]:
        """The settings of the reader that must not appear in logs."""

    @abstractmethod
    def data_source(self) -> DataSourceClass:
        """The Spark data source that reads the table."""

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if self.schema_ is not None:
            parse_schema(spark, self.schema_, field="schema")
            return self
        from pyspark.sql.pandas.types import from_arrow_schema

        found = from_arrow_schema(self.table_columns(), prefer_timestamp_ntz=True)
        return self.model_copy(update={"schema_": found.toDDL()})

    def columns(self, spark: SparkSession, site: Site) -> StructType | None:
        return None if self.schema_ is None else parse_schema(spark, self.schema_, field="schema")

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        source = self.data_source()
        register(spark, source)
        assert self.schema_ is not None, "the schema is pinned"
        reading = {
            **self.reading(),
            "schema": self.schema_,
            "position": self._position(),
            "changes": self.changes,
            "max_events": batch.max_events * inflight(batch),
            "task_events": batch.max_events,
        }
        options = {"reading": json.dumps(reading), "secret": json.dumps(self.secrets())}
        return spark.readStream.format(source.name()).options(**options).load()

    def behind(self, progress: Mapping[str, Any]) -> int | None:
        """The backlog of the table in rows, from Spark's progress report of a micro-batch."""
        latest = progress.get("latestOffset")
        return latest.get("behind") if isinstance(latest, dict) else None

    def explained(self, text: str) -> PenstockError | None:
        place = self.position_fields[-1]
        if (fault := fault_in(text)) is not None:
            path = PATHS.get(fault.code, place)
            return Invalid(fault.model_copy(update={"path": path, "hint": HINTS.get(fault.code)}))
        if (failed := UNAVAILABLE.search(text)) is not None:
            hint = "it is retried; test the connection of the source if this continues"
            return Unavailable(Problem(code="table_unavailable", message=failed[1], path=place, hint=hint))
        return None

    def trigger(self, batch: Batch) -> dict[str, Any]:
        return {"availableNow": True} if self.finite else {"processingTime": f"{self.poll_ms} milliseconds"}

    def _position(self) -> str:
        """The position, with a time converted to milliseconds."""
        if VERSION.fullmatch(self.position):
            return self.position
        found = parse_position(self.position)
        if found.time is None:
            return self.position
        return f"time:{math.ceil(round(found.time.timestamp() * 1_000_000) / 1000)}"
