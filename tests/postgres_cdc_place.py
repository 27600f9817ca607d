"""A database of a test, and a consumer of its changes in plain Python."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import psycopg

from penstock.connectors.postgres_cdc.source import PostgresCdcSource
from tests.postgres_cdc_server import ReplicatingPostgres


@dataclass
class Place:
    """A database of a test."""

    server: ReplicatingPostgres
    database: str
    sql: psycopg.Connection[Any]

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        for statement in statements:
            self.sql.execute(statement)

    def source(self, *tables: str, **fields: Any) -> PostgresCdcSource:
        made = PostgresCdcSource(url=self.server.url(self.database), tables=list(tables), **fields)
        return made.pinned(None, None)  # type: ignore[arg-type]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.sql.execute(query).fetchall()

    def columns(self, table: str) -> list[str]:
        query = (
            f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass "
            "AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        return [name for (name,) in self.rows(query)]

    def drop(self, slot: str) -> None:
        """Drop a slot whose reader is about to end, and the publication of the same name."""
        query = (
            "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots "
            "WHERE slot_name = %s AND NOT active"
        )
        until = time.monotonic() + 10
        while self.sql.execute(query, (slot,)).fetchall() == [(0,)] and time.monotonic() < until:
            time.sleep(0.02)
        self.run(f"DROP PUBLICATION {slot}")

    def slot(self, name: str) -> int:
        """Where a slot was confirmed."""
        query = f"SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = '{name}'"
        return int(self.rows(query)[0][0])


def folded(events: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """The tables of a consumer that applies events in their order, rows by their key as JSON."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for event in events:
        rows = tables.setdefault(event["table"], {})
        after = _row(event["after"])
        if event["op"] == "t":
            rows.clear()
        if event["op"] == "d":
            rows.pop(event["_key"].decode(), None)
        if after is not None:
            key = event["_key"].decode()
            kept = {name: rows[key][name] for name in event["unchanged"] or () if key in rows}
            rows[key] = after | kept
    return tables


def _row(value: Any) -> dict[str, Any] | None:
    return json.loads(value, parse_float=str) if isinstance(value, str) else value


ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount numeric(10,2))"


def content(place: Place, table: str = "orders") -> dict[str, dict[str, Any]]:
    """A table of the source, as `folded` has it."""
    names = place.columns(table)
    rows = place.rows(f"SELECT * FROM {table}")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return {json.dumps({"id": row["id"]}, separators=(",", ":")): row for row in made}
