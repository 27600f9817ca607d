"""The `delta` sink: each batch is one commit to a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from penstock.connectors.base import Delivered, Guarantee, SinkWriter
from penstock.connectors.delta.table import (
    TESTED,
    DeltaEnd,
    explained,
    library,
    not_found,
    schema_of,
)
from penstock.connectors.probe import Probe
from penstock.connectors.tables.sink import TableSink, TableWriter
from penstock.errors import Invalid, Problem
from penstock.frames.site import Site

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

DELETED = "penstock_delete"
"""The column that marks rows of a merge as deletes."""


class DeltaSink(DeltaEnd, TableSink):
    """Writes to a Delta table; each batch is one commit.

    Delivery is exactly-once: the commit includes the number of the batch as a Delta transaction (`txn`), so a
    batch that is retried after a crash is recognized and not committed again. Readers see all of a batch or
    nothing. Other writers may change the table at the same time.

    The table is created with the first batch. Columns are matched by name; the types of events may be
    narrower than those of the table, and missing columns are NULL. With `create: evolve`, new columns are
    added to the table. An event with NULL in a NOT NULL column or a key column goes to the dead letters.

    A batch must fit into the memory of the driver, and is written as at least one file per partition: set
    `batch:` to larger and less frequent batches than for other sinks, and compact the table regularly.
    """

    type: Literal["delta"] = "delta"

    guarantee: ClassVar[Guarantee] = "exactly-once"
    tested: ClassVar = TESTED
    example: ClassVar = """\
type: delta
path: lake/customers
mode: merge
key: [id]
op: {column: op, delete: [d]}
create: evolve
"""

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        table, found = self.probed()
        if table is None and self.create == "never" and not found.problems:
            return Probe(problems=[not_found(self.path)])
        return found

    def open(self, site: Site) -> SinkWriter:
        library()
        return _Writer(self)


class _Writer(TableWriter):
    """Commits batches with delta-rs in this process."""

    def __init__(self, sink: DeltaSink) -> None:
        super().__init__(sink)
        self.sink = sink
        self.table: DeltaTable | None = None

    def deliver(self, events: pa.Table, owner: str, batch: int) -> Delivered:
        try:
            return self._deliver(events, owner, batch)
        except Exception:
            self.table = None  # its state is unknown
            raise

    def close(self) -> None:
        self.table = None

    def _deliver(self, events: pa.Table, owner: str, batch: int) -> Delivered:
        from penstock.connectors.tables.changes import changes_of
        from penstock.connectors.tables.form import fitted

        table = self._refreshed()
        target = events.schema if table is None else schema_of(table)
        if table is None and self.sink.op is not None:
            target = target.remove(target.get_field_index(self.sink.op.column))
        last = None if table is None else table.transaction_version(owner)
        repeated = last is not None and last >= batch
        if self.sink.mode == "append":
            found = fitted(events, target, evolve=self.sink.evolves)
            if not repeated and found.events.num_rows:
                self._append(table, found.events, owner, batch)
            return Delivered(found.events.num_rows, found.rejected)
        changes = changes_of(events, self.sink, target)
        if not repeated:
            if table is None and changes.stored.num_rows:
                self._append(None, changes.stored, owner, batch)
            elif table is not None and (changes.stored.num_rows or changes.deleted.num_rows):
                self._merge(table, changes.stored, changes.deleted, owner, batch)
        return Delivered(changes.count, changes.rejected)

    def _refreshed(self) -> DeltaTable | None:
        """The current table; None if it has to be created."""
        if self.table is None:
            self.table = self.sink.opened()
            self._fits(self.table)
        else:
            with explained(self.sink.uri, self.sink.options):
                self.table.update_incremental()
        return self.table

    def _fits(self, table: DeltaTable | None) -> None:
        if table is None:
            if self.sink.create == "never":
                raise Invalid(not_found(self.sink.path))
            return
        wanted, found = self.sink.partition_by, list(table.metadata().partition_columns)
        if wanted and wanted != found:
            message = f"the table is partitioned by {found or 'nothing'}, not by {wanted}"
            hint = "remove partition_by to use the partitioning of the table"
            raise Invalid(Problem(code="partitioning", message=message, path="partition_by", hint=hint))

    def _append(self, table: DeltaTable | None, events: pa.Table, owner: str, batch: int) -> None:
        from deltalake import write_deltalake

        self.about_to_commit()
        given: dict[str, Any] = {"schema_mode": "merge"} if table is not None and self.sink.evolves else {}
        with explained(self.sink.uri, self.sink.options):
            write_deltalake(
                self.sink.uri if table is None else table,
                events,
                mode="append",
                partition_by=self.sink.partition_by if table is None else None,
                storage_options=dict(self.sink.options),
                commit_properties=_numbered(owner, batch),
                **given,
            )

    def _merge(self, table: DeltaTable, stored: pa.Table, deleted: pa.Table, owner: str, batch: int) -> None:
        import pyarrow as pa

        marked = [
            part.append_column(DELETED, pa.array([flag] * part.num_rows, pa.bool_()))
            for part, flag in ((stored, False), (deleted, True))
        ]
        source = pa.concat_tables(marked, promote_options="default")
        keys = [name for name in stored.column_names if name.lower() in map(str.lower, self.sink.key)]
        values = {_quoted(name): f"s.{_quoted(name)}" for name in stored.column_names}
        self.about_to_commit()
        with explained(self.sink.uri, self.sink.options):
            (
                table.merge(
                    source,
                    " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in keys),
                    source_alias="s",
                    target_alias="t",
                    merge_schema=self.sink.evolves,
                    streamed_exec=False,  # files without any of the keys are not rewritten
                    commit_properties=_numbered(owner, batch),
                )
                .when_matched_delete(f"s.{DELETED}")
                .when_matched_update(values, f"NOT s.{DELETED}")
                .when_not_matched_insert(values, f"NOT s.{DELETED}")
                .execute()
            )


def _numbered(owner: str, batch: int) -> Any:
    """Properties that identify a commit and make it fail if another process commits for the same owner."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(owner, batch)])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
