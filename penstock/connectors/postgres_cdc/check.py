"""The connection test of `postgres_cdc`: checks the server, the user's privileges and the tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.connectors.postgres_cdc.catalogue import Catalogue, TableInfo, chosen, quoted
from penstock.connectors.postgres_cdc.server import Server, said
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import Invalid, PenstockError, Problem

SAMPLE, SHOWN = 5, 500
"""Maximum rows of a sample, and maximum characters shown of a value."""

SETTINGS = """
SELECT current_setting('wal_level'), current_setting('server_encoding'),
  current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
  (SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s),
  (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_user::text
"""


def probe_postgres(server: Server, tables: Sequence[str], slot: str, snapshot: str) -> Probe:
    """The result of the connection test of a `postgres_cdc` source."""
    if problems := unreachable([server.address], "url"):
        return Probe(problems=problems)
    try:
        connection = server.connect()
    except PenstockError as error:
        return Probe(problems=error.problems)
    try:
        with said(server):
            catalogue = Catalogue(connection)
            known = catalogue.tables()
            problems = [] if snapshot == "only" else list(_of_server(catalogue, slot))
            found: list[TableInfo] = []
            try:
                found = chosen(tables, known)
            except Invalid as error:
                problems += error.problems
            problems += [problem for table in found for problem in _of_table(catalogue, table, snapshot)]
            offers = {"tables": sorted(known)}
            if found:
                relation = catalogue.relation(found[0])
                offers["columns"] = [column.name for column in relation.columns]
            sample = [] if problems or not found else _sample(catalogue, found[0])
    except PenstockError as error:
        return Probe(problems=error.problems)
    finally:
        connection.close()
    return Probe(problems=problems, offers=offers, sample=sample)


def _of_server(catalogue: Catalogue, slot: str) -> Iterator[Problem]:
    row = catalogue.one(SETTINGS, slot)
    assert row is not None
    level, encoding, free, exists, permitted, user = row
    if level != "logical":
        yield Problem(
            code="wal_level",
            message=f"the server has wal_level = {level}, but logical replication needs 'logical'",
            path="url",
            hint="set wal_level = logical in postgresql.conf, and restart the server",
        )
    if encoding == "SQL_ASCII":
        yield Problem(
            code="encoding",
            message="the database has the encoding SQL_ASCII, so the encoding of its texts is unknown",
            path="url",
            hint="use a database in UTF8, or another encoding that PostgreSQL can convert",
        )
    if not permitted:
        yield Problem(
            code="replication_forbidden",
            message=f"the user '{user}' has no REPLICATION privilege",
            path="url",
            hint=f"run: ALTER ROLE {quoted(user)} REPLICATION, or grant the replication role of the provider",
        )
    if not exists and free < 1:
        yield Problem(
            code="no_free_slot",
            message="all replication slots of the server are in use",
            path="slot",
            hint="drop an unused slot, or raise max_replication_slots, and restart the server",
        )


def _of_table(catalogue: Catalogue, table: TableInfo, snapshot: str) -> Iterator[Problem]:
    path = "tables"
    if not table.identified and snapshot != "only":
        yield Problem(
            code="no_replica_identity",
            message=f"the table '{table.table}' has no primary key: once it is published, PostgreSQL refuses "
            "to update and delete its rows",
            path=path,
            hint=f"add a primary key, or run: ALTER TABLE {table.quoted} REPLICA IDENTITY FULL",
        )
    row = catalogue.one("SELECT has_table_privilege(%s::oid, 'SELECT')", table.oid)
    if row is not None and not row[0] and snapshot != "never":
        yield Problem(
            code="postgres_forbidden",
            message=f"the user has no permission to read the table '{table.table}'",
            path=path,
            hint=f"run: GRANT SELECT ON {table.quoted} TO the user",
        )


def _sample(catalogue: Catalogue, table: TableInfo) -> list[dict[str, Any]]:
    with catalogue.connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table.quoted} LIMIT {SAMPLE}")
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, map(_shown, row), strict=True)) for row in cursor.fetchall()]


def _shown(value: Any) -> Any:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return (value.hex() if isinstance(value, memoryview) else str(value))[:SHOWN]
