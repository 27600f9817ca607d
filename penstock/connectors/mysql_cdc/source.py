"""The `mysql_cdc` source: changes of tables in MySQL and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.base import SourceGuarantee
from penstock.connectors.cdc.envelopes import ENVELOPES, Envelope, schema_of
from penstock.connectors.mysql_cdc.catalog import is_pattern
from penstock.connectors.mysql_cdc.server import MySqlServer
from penstock.connectors.mysql_cdc.start import StartText
from penstock.connectors.probe import Probe
from penstock.connectors.received import ReceivedSource, Receiver
from penstock.frames.site import Site
from penstock.specs.conditions import only_with
from penstock.specs.policies import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class MySqlCdcSource(MySqlServer, ReceivedSource):
    """Reads the rows of tables in MySQL or MariaDB, and then their changes from the binary log.

    Delivery into the pipeline is exactly-once: changes are appended to the pipeline's own stream together
    with their position in the binary log, so that after a crash no change is lost or duplicated. Transactions
    stay intact and in commit order. The snapshot is read in chunks that are ordered correctly among the
    changes: a consumer that applies the events by key, in order, ends up with the rows of the table.

    Each event has the columns `op` (c created, u updated, d deleted, r read by the snapshot, t all rows
    removed), `table`, `before`, `after`, `position` (file and position), `tx` (the GTID), `time` and `id`,
    and the primary key as JSON in its key. With one table, `before` and `after` are structs with the columns
    of the table, which are read from the database when the pipeline is saved; a row with a value that doesn't
    match its column goes to the dead letters. With several tables or a pattern, they are JSON objects.

    Requires `binlog_format = ROW`, `binlog_row_image = FULL`, `binlog_row_metadata = FULL` and a user with
    SELECT, REPLICATION SLAVE and REPLICATION CLIENT.
    """

    type: Literal["mysql_cdc"] = "mysql_cdc"
    tables: list[str] = Field(
        min_length=1,
        description="Tables as `database.table`, or patterns such as `shop.order_*`. Tables can be added at "
        "any time and are then read by a snapshot, too.",
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="One table: the columns of its rows as Spark DDL; absent: read from the database when "
        "the pipeline is saved.",
    )
    snapshot: Literal["initial", "never", "only"] = Field(
        default="initial",
        description="Existing rows: read them before the changes, never, or read them and stop as "
        "`completed`.",
    )
    snapshot_chunk_rows: int = Field(default=20_000, ge=1, le=1_000_000, description="Rows read per query.")
    position: StartText = Field(
        default="latest",
        json_schema_extra=only_with(snapshot=["never"]),
        description="Start position of the changes: earliest, latest, gtid:SET or file:NAME:POS.",
    )
    envelope: Envelope = Field(default="native", description=ENVELOPES)
    server_id: int | None = Field(
        default=None,
        ge=1,
        le=4_294_967_295,
        description="Server id of this reader; must be unique among the readers and replicas of the server. "
        "Absent: derived from the name of the pipeline.",
    )

    guarantee: ClassVar[SourceGuarantee] = "exactly-once"
    tested: ClassVar = "MariaDB 10.11"
    example: ClassVar = """\
type: mysql_cdc
url: mysql://penstock:${DB_PASSWORD}@db.example:3306
tables: [shop.orders]
"""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name in self.tables:
            if "." not in name and self.database is None and "${" not in name + (self.url or ""):
                raise ValueError(f"'{name}' has no database: use database.{name}")
        if self.schema_ is not None and not self.typed:
            raise ValueError("'schema' needs exactly one table and the envelope 'native'")
        if self.snapshot != "never" and self.position != "latest":
            raise ValueError("'position' can only be used with snapshot 'never'")
        return self

    @property
    def typed(self) -> bool:
        """Whether rows become structs."""
        return self.envelope == "native" and len(self.tables) == 1 and not is_pattern(self.tables[0])

    @property
    def row_ddl(self) -> str | None:
        """The columns of the only table; None: rows are JSON."""
        return self.schema_ if self.typed else None

    @property
    def full_names(self) -> list[str]:
        """The tables with their databases."""
        return [name if "." in name else f"{self.database}.{name}" for name in self.tables]

    @classmethod
    def input_schema(cls, spec: Any) -> str | None:
        source = cls.model_validate(spec) if isinstance(spec, dict) else spec
        return schema_of(source.envelope, source.row_ddl)

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        from penstock.connectors.mysql_cdc.inference import check_schema, inferred

        if not self.typed:
            return self
        if self.schema_ is None:
            return self.model_copy(update={"schema_": inferred(self)})
        check_schema(self.schema_)
        return self

    def receiver(self, site: Site) -> Receiver:
        from penstock.connectors.mysql_cdc.receiver import BinlogReceiver

        return BinlogReceiver(self, site)

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        from pyspark.sql.types import StructType

        from penstock.connectors.cdc.faults import FAULT

        found = super().columns(spark, site)
        return StructType([field for field in found.fields if self.row_ddl is None or field.name != FAULT])

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        return self._noted(super().read(spark, batch, site))

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return self._noted(super().reread(spark, site, first, end))

    def _noted(self, df: DataFrame) -> DataFrame:
        from penstock.connectors.cdc.faults import noted

        return df if self.row_ddl is None else noted(df)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.mysql_cdc.check import probe_mysql

        return probe_mysql(self)
