"""The `delta` source: the existing and new rows of a Delta table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from penstock.connectors.delta.table import (
    QUICK,
    TESTED,
    DeltaEnd,
    explained,
    library,
    not_found,
    schema_of,
)
from penstock.connectors.file.paths import is_local
from penstock.connectors.probe import Probe
from penstock.connectors.tables.source import TableSource
from penstock.errors import Invalid
from penstock.frames.site import Site

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

    from penstock.connectors.tables.source import DataSourceClass

SAMPLE = 5
"""Maximum number of rows in a sample."""


class DeltaSource(DeltaEnd, TableSource):
    """Reads a Delta table: first the existing rows, then the rows that are appended.

    Progress is stored in the pipeline's checkpoint, as a version of the table and a number of its files, so
    that a restart resumes exactly where the last committed batch ended. A micro-batch consists of whole
    files.

    A commit that deletes or rewrites rows fails the pipeline, or is skipped (`changes: skip`). Compaction
    doesn't count as a change, because it changes no rows. A version that was removed from the table's log
    before it was read fails the pipeline. Tables with column mapping can't be read, and tables with deletion
    vectors only from a position where no file has deleted rows.
    """

    type: Literal["delta"] = "delta"

    def task_paths(self) -> Iterable[tuple[str, str]]:
        return [("path", self.path)]

    position_fields: ClassVar = ("type", "path")
    tested: ClassVar = TESTED
    example: ClassVar = """\
type: delta
path: lake/orders
position: time:2026-01-31T12:00:00Z
"""

    def table_columns(self) -> pa.Schema:
        table = self.opened()
        if table is None:
            raise Invalid(not_found(self.path))
        return schema_of(table)

    def reading(self) -> dict[str, Any]:
        library()
        return {"uri": self.uri}

    def secrets(self) -> dict[str, Any]:
        return {"options": self.options}

    def data_source(self) -> DataSourceClass:
        from penstock.connectors.delta.log import DeltaDataSource

        return DeltaDataSource

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        table, found = self.probed()
        if found.problems:
            return found
        if table is None:
            return Probe(problems=[not_found(self.path)])
        quick = {} if is_local(self.path) else QUICK
        with explained(self.uri, {**self.options, **quick}):
            return found.model_copy(update={"sample": _sample(table)})


def _sample(table: DeltaTable) -> list[dict[str, Any]]:
    """The first rows of a table."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    from penstock.streams.rendering import plain_values

    rows = QueryBuilder().register("t", table).execute(f"SELECT * FROM t LIMIT {SAMPLE}")
    found = pa.table(rows.read_all()).combine_chunks()
    return [row for batch in found.to_batches() for row in plain_values(batch.to_struct_array())]
