"""The `iceberg` source: the existing and new rows of an Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from penstock.connectors.iceberg.catalog import (
    PASSWORD,
    TESTED,
    IcebergEnd,
    explained,
    library,
    not_found,
    schema_of,
)
from penstock.connectors.probe import Probe
from penstock.connectors.tables.source import TableSource
from penstock.errors import Invalid, PenstockError
from penstock.frames.site import Site

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.connectors.tables.source import DataSourceClass

SAMPLE = 5
"""Maximum number of rows in a sample."""


class IcebergSource(IcebergEnd, TableSource):
    """Reads an Iceberg table: first the existing rows, then the rows that are appended.

    Progress is stored in the pipeline's checkpoint, as a snapshot of the table and a number of its files, so
    that a restart resumes exactly where the last committed batch ended. A micro-batch consists of whole
    files.

    A commit that deletes or rewrites rows fails the pipeline, or is skipped (`changes: skip`). Compaction
    doesn't count as a change, because it changes no rows. A snapshot that expired before it was read fails
    the pipeline. In `position: version:N`, N is the id of a snapshot.
    """

    type: Literal["iceberg"] = "iceberg"

    position_fields: ClassVar = ("type", "table")
    tested: ClassVar = TESTED
    example: ClassVar = """\
type: iceberg
catalog: {type: sql, uri: 'sqlite:////var/lib/lake/catalog.db'}
table: sales.orders
changes: skip
"""

    def position_of(self, site: Site) -> dict[str, Any]:
        place = PASSWORD.sub("@", self.catalog.uri)
        return {"type": "iceberg", "uri": place, "catalog": self.catalog.name, "table": self.table}

    def table_columns(self) -> pa.Schema:
        from pyiceberg.exceptions import NoSuchTableError

        catalog = self.connected()
        with explained(self.properties):
            try:
                return schema_of(catalog.load_table(self.table))
            except NoSuchTableError:
                raise Invalid(not_found(self.table, [])) from None

    def reading(self) -> dict[str, Any]:
        library()
        return {"table": self.table}

    def secrets(self) -> dict[str, Any]:
        return {"properties": self.properties}

    def data_source(self) -> DataSourceClass:
        from penstock.connectors.iceberg.log import IcebergDataSource

        return IcebergDataSource

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.streams.rendering import plain_values

        table, found = self.probed(must_exist=True)
        if table is None:
            return found
        try:
            with explained(self.properties):
                rows = table.scan(limit=SAMPLE).to_arrow().combine_chunks()
        except PenstockError as error:
            return found.model_copy(update={"problems": error.problems})
        sample = [row for batch in rows.to_batches() for row in plain_values(batch.to_struct_array())]
        return found.model_copy(update={"sample": sample})
