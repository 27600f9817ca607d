"""The event log of the registry, in the order in which transactions committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, delete, func, insert, select

from penstock.control.registry import database
from penstock.control.registry.records import Event, JsonObject
from penstock.control.registry.tables import events

KEPT_EVENTS = 10_000

_PENDING = "penstock_pending_events"


@dataclass(frozen=True)
class _Pending:
    kind: str
    name: str
    type: str
    data: JsonObject


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction that may emit events."""
    pending: list[_Pending] = []
    with database.writing(engine, **{_PENDING: pending}) as conn:
        yield conn
        if pending:
            _append(conn, pending)


def emit(conn: Connection, kind: str, name: str, event: str, data: JsonObject | None = None) -> None:
    """Records an event together with the transaction of `conn`."""
    conn.get_execution_options()[_PENDING].append(_Pending(kind, name, event, data or {}))


def events_after(conn: Connection, last_id: int, limit: int) -> list[Event]:
    """The events that follow `last_id`, oldest first."""
    rows = conn.execute(select(events).where(events.c.id > last_id).order_by(events.c.id).limit(limit))
    return [Event(**row._mapping) for row in rows]


def last_event_id(conn: Connection) -> int:
    """The id of the newest event, 0 before the first."""
    return conn.scalar(select(func.max(events.c.id))) or 0


def first_event_id(conn: Connection) -> int:
    """The id of the oldest retained event, 0 before the first."""
    return conn.scalar(select(func.min(events.c.id))) or 0


def _append(conn: Connection, pending: list[_Pending]) -> None:
    # Ids are assigned only now and by one transaction at a time: after a reader has seen an id, no lower
    # id can appear that the reader would miss.
    database.lock(conn, database.EVENTS_LOCK)
    at = datetime.now(UTC)
    conn.execute(insert(events), [{"at": at, **asdict(event)} for event in pending])
    conn.execute(delete(events).where(events.c.id <= last_event_id(conn) - KEPT_EVENTS))
