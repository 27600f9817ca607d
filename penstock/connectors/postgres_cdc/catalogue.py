"""Tables, publications and slots of a database."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.postgres_cdc.kinds import Kinds
from penstock.connectors.postgres_cdc.names import full_name, is_pattern
from penstock.connectors.postgres_cdc.position import lsn_number
from penstock.connectors.postgres_cdc.wire import Column, Relation
from penstock.errors import Invalid, Problem, did_you_mean

if TYPE_CHECKING:
    from psycopg2.extensions import connection

TABLES = """
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, c.relreplident::text, c.relispartition,
  ARRAY(SELECT a.attname::text FROM pg_index i
   CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(number, place)
   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
   WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts
   AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END ORDER BY k.place)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
ORDER BY 2, 3
"""
COLUMNS = """
SELECT attname::text, atttypid, atttypmod FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""
TYPE = """
SELECT typtype::text, typbasetype, typtypmod, typelem, typcategory::text, typdelim::text
FROM pg_type WHERE oid = %s
"""
SLOT = """
SELECT plugin::text, database::text, confirmed_flush_lsn::text, active_pid, wal_status::text,
  (SELECT a.application_name FROM pg_stat_activity a WHERE a.pid = s.active_pid)
FROM pg_replication_slots s WHERE slot_name = %s
"""
PARTS = "SELECT schemaname::text || '.' || tablename::text{} FROM pg_publication_tables WHERE pubname = %s"


@dataclass(frozen=True)
class TableInfo:
    """A table in the catalog of a database."""

    oid: int
    schema: str
    name: str
    kind: str
    """r, or p for a partitioned table."""
    identity: str
    """Its replica identity: d, f, i or n."""
    partition: bool
    key: Sequence[str]
    """The columns of its primary key, or of the index that is its replica identity."""

    @property
    def table(self) -> str:
        """The name of the table with its schema."""
        return f"{self.schema}.{self.name}"

    @property
    def label(self) -> str:
        """The name and OID of the table: a table that was dropped and created again has another label."""
        return f"{self.table}#{self.oid}"

    @property
    def identified(self) -> bool:
        """Whether rows can be updated and deleted once the table is published."""
        return self.identity in "fi" or (self.identity == "d" and bool(self.key))

    @property
    def quoted(self) -> str:
        """The quoted name of the table with its schema."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True)
class Slot:
    """A replication slot."""

    plugin: str
    database: str
    confirmed: int
    reader: int | None
    """The id of the process that reads the slot."""
    status: str | None
    application: str | None
    """The application name of the reader."""


@dataclass(frozen=True)
class Published:
    """The columns and rows of a table that a publication includes."""

    columns: tuple[str, ...] | None = None
    """None: all columns."""
    where: str | None = None


class Catalogue:
    """Queries the catalog of a database."""

    def __init__(self, connected: connection) -> None:
        self.connection = connected
        self.kinds = Kinds(lambda type_: self.one(TYPE, type_))

    @property
    def version(self) -> int:
        """The server's version, such as 150018."""
        return self.connection.server_version

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchall()

    def one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a query."""
        return next(iter(self.rows(query, *values)), None)

    def run(self, *statements: str) -> None:
        """Run statements in one transaction."""
        with self.connection.cursor() as cursor:
            cursor.execute("; ".join(statements))

    def tables(self) -> dict[str, TableInfo]:
        """All tables, by their full name."""
        found = [TableInfo(*row) for row in self.rows(TABLES)]
        return {table.table: table for table in found}

    def relation(self, table: TableInfo) -> Relation:
        """A table as currently defined."""
        columns = (Column(name, kind, modifier) for name, kind, modifier in self.rows(COLUMNS, table.oid))
        return Relation(table.oid, table.schema, table.name, tuple(columns), table.identity)

    def published(self, publication: str) -> dict[str, Published] | None:
        """The tables of a publication; None if it doesn't exist."""
        if not self.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", publication):
            return None
        if self.version < 150000:
            return {table: Published() for (table,) in self.rows(PARTS.format(""), publication)}
        found = self.rows(PARTS.format(", attnames::text[], rowfilter"), publication)
        return {table: Published(tuple(columns or ()), where) for table, columns, where in found}

    def slot(self, name: str) -> Slot | None:
        """A slot by name; None if it doesn't exist."""
        row = self.one(SLOT, name)
        if row is None:
            return None
        plugin, database, confirmed, reader, status, application = row
        lsn = lsn_number(confirmed) if confirmed else 0
        return Slot(plugin or "", database or "", lsn, reader, status, application)


def quoted(name: str) -> str:
    """A quoted name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def chosen(wanted: Sequence[str], known: dict[str, TableInfo]) -> list[TableInfo]:
    """The tables that match names or patterns; raises `Invalid` if a name or pattern matches none."""
    found: dict[str, TableInfo] = {}
    problems = []
    for i, each in enumerate(map(full_name, wanted)):
        if is_pattern(each):
            names = [name for name in known if fnmatch.fnmatchcase(name, each) and not known[name].partition]
            message, hint = f"no table matches '{each}'", "check the pattern, such as public.order_*"
        else:
            names = [each] if each in known else []
            message = f"there is no table '{each}'"
            hint = did_you_mean(each, known) if known else "create the table"
        if not names:
            problems.append(Problem(code="unknown_table", message=message, path=f"tables[{i}]", hint=hint))
        found |= {name: known[name] for name in names}
    if problems:
        raise Invalid(*problems)
    return list(found.values())


def check_identities(tables: Iterable[TableInfo]) -> None:
    """Reject tables whose rows could no longer be updated once they are published."""
    problems = [
        Problem(
            code="no_replica_identity",
            message=f"the table '{table.table}' has no primary key: once it is published, PostgreSQL refuses "
            "to update and delete its rows",
            path="tables",
            hint=f"add a primary key, or run: ALTER TABLE {table.quoted} REPLICA IDENTITY FULL",
        )
        for table in tables
        if not table.identified
    ]
    if problems:
        raise Invalid(*problems)
