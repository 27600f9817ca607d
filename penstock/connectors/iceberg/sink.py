"""The `iceberg` sink: each batch is one commit to an Iceberg table."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.connectors.base import Delivered, Guarantee, SinkWriter
from penstock.connectors.iceberg.catalog import (
    TESTED,
    IcebergEnd,
    explained,
    library,
    not_found,
    schema_of,
)
from penstock.connectors.probe import Probe
from penstock.connectors.tables.sink import TableSink, TableWriter
from penstock.errors import Invalid, Problem, Unavailable
from penstock.frames.site import Site

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction
    from pyspark.sql import SparkSession

    from penstock.connectors.tables.changes import Changes

ATTEMPTS = 5
"""Maximum attempts to commit while other writers change the table."""

RETRIES = "commit.retry.num-retries"

DELIVERY = "penstock.delivery"
"""The property of a snapshot that identifies its batch."""


class IcebergSink(IcebergEnd, TableSink):
    """Writes to an Iceberg table; each batch is one commit.

    Delivery is exactly-once: the commit also sets a property of the table, `penstock.batch.…`, to the number
    of the batch, so a batch that is retried after a crash is recognized and not committed again. Readers see
    all of a batch or nothing. Other writers may change the table at the same time.

    The table and its namespace are created with the first batch. Columns are matched by name; the types of
    events may be narrower than those of the table, and missing columns are NULL. With `create: evolve`, new
    columns are added to the table. An event with NULL in a required column or a key column goes to the dead
    letters.

    A batch must fit into the memory of the driver, and is written as at least one file per partition: set
    `batch:` to larger and less frequent batches than for other sinks, and compact the table regularly.
    `merge` rewrites the files that contain a row with one of the keys.
    """

    type: Literal["iceberg"] = "iceberg"

    guarantee: ClassVar[Guarantee] = "exactly-once"
    tested: ClassVar = TESTED
    example: ClassVar = """\
type: iceberg
catalog:
  type: rest
  uri: https://catalog.example
  warehouse: lake
  options: {credential: '${CATALOG_CREDENTIAL}'}
table: sales.orders
partition_by: [country]
"""

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return self.probed(must_exist=self.create == "never")[1]

    def open(self, site: Site) -> SinkWriter:
        library()
        return _Writer(self)


class _Writer(TableWriter):
    """Commits batches with PyIceberg in this process."""

    def __init__(self, sink: IcebergSink) -> None:
        super().__init__(sink)
        self.sink = sink
        self.catalog: Catalog | None = None

    def deliver(self, events: pa.Table, owner: str, batch: int) -> Delivered:
        from pyiceberg.exceptions import CommitFailedException

        reason = ""
        for _ in range(ATTEMPTS):
            try:
                with explained(self.sink.properties):
                    return self._deliver(events, owner, batch)
            except CommitFailedException as error:  # another writer was faster: reload the table
                reason = str(error).splitlines()[0]
        message = f"concurrent writers keep changing '{self.sink.table}': {reason}"
        hint = "the commit is retried; fewer and larger commits by other writers help"
        raise Unavailable(Problem(code="conflict", message=message, path="table", hint=hint))

    def close(self) -> None:
        self.catalog = None

    def _deliver(self, events: pa.Table, owner: str, batch: int) -> Delivered:
        from penstock.connectors.tables.changes import changes_of
        from penstock.connectors.tables.form import fitted

        table = self._table(events)
        target, last = schema_of(table), table.properties.get(property_of(owner))
        repeated = last is not None and int(last) >= batch
        if self.sink.mode == "append":
            found = fitted(events, target, evolve=self.sink.evolves)
            if not repeated and found.events.num_rows:
                with _alone(table) as transaction:
                    self._evolve(transaction, target, found.events.schema)
                    transaction.append(found.events, {DELIVERY: f"{owner}/{batch}"})
                    transaction.set_properties({property_of(owner): str(batch)})
                    self.about_to_commit()
            return Delivered(found.events.num_rows, found.rejected)
        changes = changes_of(events, self.sink, target)
        if not repeated and (changes.stored.num_rows or changes.deleted.num_rows):
            self._merge(table, target, changes, owner, batch)
        return Delivered(changes.count, changes.rejected)

    def _merge(self, table: Table, target: pa.Schema, changes: Changes, owner: str, batch: int) -> None:
        from penstock.connectors.iceberg.merging import merged

        found = merged(table, target, changes)
        delivery = {DELIVERY: f"{owner}/{batch}"}
        with _alone(table) as transaction:
            self._evolve(transaction, target, changes.stored.schema)
            if found.touched:
                transaction.delete(found.where, delivery)
            if found.rows.num_rows:
                transaction.append(found.rows, delivery)
            transaction.set_properties({property_of(owner): str(batch)})
            self.about_to_commit()

    def _evolve(self, transaction: Transaction, target: pa.Schema, schema: pa.Schema) -> None:
        import pyarrow as pa

        known = {name.lower() for name in target.names}
        new = [field for field in schema if field.name.lower() not in known]
        if new:
            with transaction.update_schema() as update:
                update.union_by_name(pa.schema(new))

    def _table(self, events: pa.Table) -> Table:
        """The current table, created if it doesn't exist."""
        from pyiceberg.exceptions import NoSuchTableError

        if self.catalog is None:
            self.catalog = self.sink.connected()
        try:
            table = self.catalog.load_table(self.sink.table)
        except NoSuchTableError:
            if self.sink.create == "never":
                raise Invalid(not_found(self.sink.table, [])) from None
            return self._created(self.catalog, events)
        wanted = self.sink.partition_by
        names = {field.field_id: field.name for field in table.schema().fields}
        found = [names.get(field.source_id, field.name) for field in table.spec().fields]
        if wanted and wanted != found:
            message = f"the table is partitioned by {found or 'nothing'}, not by {wanted}"
            hint = "remove partition_by to use the partitioning of the table"
            raise Invalid(Problem(code="partitioning", message=message, path="partition_by", hint=hint))
        return table

    def _created(self, catalog: Catalog, events: pa.Table) -> Table:
        from pyiceberg.exceptions import TableAlreadyExistsError

        schema = events.schema
        if self.sink.op is not None:
            schema = schema.remove(schema.get_field_index(self.sink.op.column))
        self.about_to_commit()
        catalog.create_namespace_if_not_exists(self.sink.namespace)
        try:
            with (
                catalog.create_table_transaction(self.sink.table, schema) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in self.sink.partition_by:
                    spec.add_identity(name)
        except TableAlreadyExistsError:  # another writer has just created it
            pass
        return catalog.load_table(self.sink.table)


def property_of(owner: str) -> str:
    """The property of a table with the number of the last batch that an owner has committed."""
    return f"penstock.batch.{hashlib.sha256(owner.encode()).hexdigest()[:16]}"


def _alone(table: Table) -> Transaction:
    """A transaction that fails if the table has changed since it was loaded.

    On its own, the library would retry the commit on the changed table, which may already have the batch.
    """
    properties = {**table.metadata.properties, RETRIES: "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table.transaction()
