"""The `postgres_cdc` source: changes of PostgreSQL tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.connectors.cdc.faults import FAULT, noted
from penstock.connectors.postgres_cdc.names import default_name, full_name, is_pattern
from penstock.connectors.postgres_cdc.server import Server
from penstock.connectors.probe import Probe
from penstock.connectors.received import ReceivedSource, Receiver
from penstock.frames.site import Site
from penstock.specs.policies import Batch
from penstock.specs.reach import ClientOptions, DatabaseUrl, ServerAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.cdc.envelopes import Envelope
    from penstock.connectors.postgres_cdc.events import Form

SLOT = re.compile(r"[a-z0-9_]{1,63}")
SCHEMES = ("postgresql", "postgres")


class PostgresCdcSource(ReceivedSource):
    """Reads the rows of PostgreSQL tables, and then their changes by logical replication.

    Delivery into the pipeline is exactly-once. The changes of a transaction stay together, in commit order,
    with the id of the transaction in `tx`. Changes are appended to the pipeline's own stream together with
    their position in the server's log, and the replication slot is confirmed only after that. After a crash,
    changes that the server sends again are skipped.

    Each event has the columns `op` (c insert, u update, d delete, r row of the snapshot, t truncate,
    m message), `table`, `before`, `after`, `unchanged`, `position`, `tx`, `time` (of the commit) and `id`,
    and the primary key as JSON in its key. An update that changes the key becomes a `d` and a `c`. With one
    table, `before` and `after` are structs with the columns of the table, which are read from the database
    when the pipeline is saved; a row with a value that doesn't match its column goes to the dead letters.
    With several tables or a pattern, they are JSON objects.

    Requires PostgreSQL 13 or newer, `wal_level = logical`, and a user with REPLICATION that can read the
    tables.
    """

    type: Literal["postgres_cdc"] = "postgres_cdc"
    url: DatabaseUrl | None = Field(
        default=None,
        description="Address of the database: postgresql://user:password@host:5432/database. Alternatively, "
        "set `host` and the fields after it.",
    )
    host: ServerAddress | None = Field(default=None, min_length=1, description="Host of the server.")
    port: int = Field(default=5432, ge=1, le=65535, description="Port of the server.")
    database: str = Field(default="postgres", min_length=1, description="Name of the database.")
    user: str | None = Field(default=None, min_length=1, description="User name.")
    password: str | None = Field(
        default=None, description="Password; use `${NAME}` to read it from an environment variable."
    )
    options: ClientOptions = Field(
        default_factory=dict,
        description="Additional libpq connection parameters, such as `sslmode`.",
    )
    tables: list[str] = Field(
        default_factory=list,
        description="Tables as `schema.table`, or patterns such as `public.order_*`. Tables that match a "
        "pattern later are added at the next start of the pipeline. Tables can be added at any time.",
    )
    messages: list[str] = Field(
        default_factory=list,
        description="Prefixes, or patterns, of messages written with `pg_logical_emit_message`. Their "
        "events have `op` m, `message.prefix` and `message.content`.",
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
    snapshot_chunk_rows: int = Field(
        default=20_000,
        ge=1,
        le=1_000_000,
        description="Rows read per query. They must fit into memory.",
    )
    envelope: Literal["native", "debezium", "cloudevents"] = Field(
        default="native",
        description="Event format: the columns above, or one JSON document in `value`, as written by "
        "Debezium or as a CloudEvent.",
    )
    publication: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="Name of the publication; created if it does not exist. Absent: a publication for this "
        "pipeline, created and maintained by Penstock.",
    )
    slot: str | None = Field(
        default=None,
        description="Name of the replication slot; created if it does not exist. Absent: a slot for this "
        "pipeline. Penstock never drops a slot.",
    )
    heartbeat_ms: int = Field(
        default=10_000,
        ge=100,
        description="How often the slot is confirmed while there are no changes for the pipeline, so that "
        "the server can remove old WAL.",
    )

    guarantee: ClassVar = "exactly-once"
    tested: ClassVar = "PostgreSQL 15"
    example: ClassVar = """\
type: postgres_cdc
url: postgresql://penstock:${DB_PASSWORD}@db.example:5432/shop
tables: [public.orders]
"""

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None or "${" in value:
            return value
        try:
            if urlsplit(value).scheme in SCHEMES and urlsplit(value).port != 0:
                return value
        except ValueError:  # the port is not a number
            pass
        raise ValueError("use postgresql://user:password@host:5432/database")

    @field_validator("slot")
    @classmethod
    def _is_slot(cls, value: str | None) -> str | None:
        if value is not None and "${" not in value and not SLOT.fullmatch(value):
            raise ValueError("a slot name must have 1 to 63 lower-case letters, digits or '_'")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.url is None) == (self.host is None):
            raise ValueError("set either 'url' or 'host'")
        fields = type(self).model_fields
        parts = ("port", "database", "user", "password")
        given = [name for name in parts if getattr(self, name) != fields[name].default]
        if self.url is not None and given:
            raise ValueError(f"'{given[0]}' is part of 'url'")
        if not self.tables and not self.messages:
            raise ValueError("set 'tables', 'messages' or both")
        if self.snapshot == "only" and (self.messages or not self.tables):
            raise ValueError("a snapshot has no messages: set only 'tables'")
        if self.schema_ is not None and not self.typed:
            raise ValueError("'schema' needs exactly one table and envelope 'native'")
        return self

    @property
    def typed(self) -> bool:
        """Whether rows become structs."""
        return _is_typed(self.envelope, self.tables)

    @property
    def server(self) -> Server:
        """The address of the database, and the login."""
        if self.url is not None:
            return Server.of(self.url, self.options)
        host = self.host or "localhost"
        return Server(host, self.port, self.database, self.user, self.password, self.options)

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str | None:
        from penstock.connectors.postgres_cdc.events import Form

        envelope: Envelope = spec.get("envelope") or "native"
        tables = spec.get("tables") or []
        schema = spec.get("schema") if _is_typed(envelope, tables) else None
        return Form(envelope, "", "", schema, messages=bool(spec.get("messages"))).ddl()

    def form(self, slot: str) -> Form:
        """The form in which changes become events."""
        from penstock.connectors.postgres_cdc.events import Form

        database = self.server.database
        return Form(self.envelope, database, slot, self.schema_, messages=bool(self.messages))

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        if not self.typed:
            return self
        from penstock.connectors.postgres_cdc.inference import check_schema, inferred

        if self.schema_ is None:
            return self.model_copy(update={"schema_": inferred(self.server, full_name(self.tables[0]))})
        check_schema(self.schema_)
        return self

    def receiver(self, site: Site) -> Receiver:
        from penstock.connectors.postgres_cdc.receiver import PostgresReceiver, Wanted
        from penstock.connectors.postgres_cdc.setup import Names

        name = default_name(site.flow)
        names = Names(
            publication=self.publication or name,
            slot=self.slot or name,
            reader=f"penstock/{hashlib.sha256(site.flow.encode()).hexdigest()[:12]}/",
            epoch=site.epoch,
            managed=self.publication is None,
        )
        wanted = Wanted(
            tuple(self.tables),
            tuple(self.messages),
            self.snapshot,
            self.snapshot_chunk_rows,
            self.heartbeat_ms / 1000,
        )
        return PostgresReceiver(self.server, names, self.form(names.slot), wanted)

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        from pyspark.sql.types import StructType

        found = super().columns(spark, site)
        return StructType([field for field in found.fields if not self.typed or field.name != FAULT])

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        return self._noted(super().read(spark, batch, site))

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return self._noted(super().reread(spark, site, first, end))

    def _noted(self, df: DataFrame) -> DataFrame:
        return noted(df) if self.typed else df

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.postgres_cdc.check import probe_postgres

        return probe_postgres(self.server, self.tables, self.slot or default_name(site.flow), self.snapshot)


def _is_typed(envelope: str, tables: Sequence[str]) -> bool:
    return envelope == "native" and len(tables) == 1 and not is_pattern(tables[0])
