"""Receives the rows of tables and then their changes, for the input stream of a flow."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.connectors.postgres_cdc.catalogue import Catalogue, Published, TableInfo, chosen, quoted
from penstock.connectors.postgres_cdc.changes import ChangeReader, Connection
from penstock.connectors.postgres_cdc.events import Form
from penstock.connectors.postgres_cdc.position import Position, lsn_number
from penstock.connectors.postgres_cdc.server import Server, said
from penstock.connectors.postgres_cdc.setup import (
    Names,
    create_slot,
    ensure_publication,
    find_slot,
    release_slot,
    system_of,
)
from penstock.connectors.postgres_cdc.snapshot import Snapshot
from penstock.connectors.postgres_cdc.tables import Table, check_columns
from penstock.connectors.postgres_cdc.wire import Relation
from penstock.connectors.received import Ended, Received, Receiver
from penstock.connectors.remote import wait_readable
from penstock.errors import Invalid, Problem, Unavailable

if TYPE_CHECKING:
    from psycopg2.extensions import connection
    from psycopg2.extras import LogicalReplicationConnection, ReplicationCursor

WAIT_S = 0.1
"""Maximum seconds to wait for the socket, so that `stop` takes effect soon."""

LOOK_S = 10.0
"""Seconds between checks whether the tables still exist."""

LAG_S = 1.0
"""Seconds between queries for the position of the server."""

NOW = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END)::text
"""


@dataclass(frozen=True)
class Wanted:
    """The tables and messages that a flow reads, and its settings for reading them."""

    tables: tuple[str, ...]
    messages: tuple[str, ...] = ()
    snapshot: str = "initial"
    chunk_rows: int = 20_000
    heartbeat_s: float = 10.0


class PostgresReceiver(Receiver):
    """Reads the snapshot of tables, and then their changes from a replication slot."""

    def __init__(self, server: Server, names: Names, form: Form, wanted: Wanted) -> None:
        self._server, self._names, self._form, self._wanted = server, names, form, wanted
        self._stopped = threading.Event()
        self._catalogue: Catalogue | None = None
        self._connection: LogicalReplicationConnection | None = None
        self._cursor: ReplicationCursor | None = None
        self._snapshot: Snapshot | None = None
        self._reader: ChangeReader | None = None
        self._followed: dict[str, TableInfo] = {}
        self._tables: dict[int, Table] = {}
        self._unconfirmed = 0
        self._beaten_at = self._looked_at = 0.0
        self._began_at = self._events = 0
        self._lag: tuple[float, int | None] = (0.0, None)
        self._warned: set[str] = set()

    # Opening

    def open(self, position: str | None) -> None:
        """Connect, create a missing publication and slot, and resume where the last durable batch ended."""
        self._stopped.clear()
        self._catalogue = Catalogue(self._server.connect(self._names.application))
        with said(self._server):
            self._prepare(None if position is None else Position.parse(position))

    def _prepare(self, position: Position | None) -> None:
        catalogue, wanted = self._known, self._wanted
        self._followed = {table.table: table for table in chosen(wanted.tables, catalogue.tables())}
        if wanted.snapshot == "only":
            origin = f"{self._server.address}/{self._server.database}"
            position = _checked(position, origin) or Position(self._server_position(), origin=origin)
            self._begin_snapshot(position, None)
            return
        self._connection = self._server.replicate(self._names.application)
        origin = f"{system_of(self._connection)}/{self._server.database}/{self._names.slot}"
        position = _checked(position, origin)
        ensure_publication(catalogue, self._names, list(self._followed.values()), self._stopped.is_set)
        confirmed = find_slot(catalogue, self._names, self._server.database, begun=position is not None)
        exported = None
        if confirmed is None:
            created = create_slot(self._connection, self._names.slot)
            confirmed, exported = created.lsn, created.snapshot
        position = position or Position(confirmed, origin=origin)
        if wanted.snapshot == "never":
            self._start(position)
        else:
            self._begin_snapshot(position, exported)

    def _begin_snapshot(self, position: Position, exported: str | None) -> None:
        published = self._known.published(self._names.publication) or {}
        rows = self._wanted.chunk_rows
        snapshot = Snapshot(self._known, self._followed, published, self._form, rows, self._table, position)
        if snapshot.left:
            snapshot.begin(exported)
            self._snapshot = snapshot
        elif self._wanted.snapshot == "only":
            raise Ended
        else:
            self._start(position)

    def _start(self, position: Position) -> None:
        """Start reading the slot."""
        assert self._connection is not None
        release_slot(self._known, self._names, self._stopped.is_set)
        options = {"proto_version": "1", "publication_names": quoted(self._names.publication)}
        if self._wanted.messages:
            options["messages"] = "true"
        cursor = self._connection.cursor()
        cursor.start_replication(self._names.slot, start_lsn=position.lsn, options=options)

        def read() -> bytes | None:
            message = cursor.read_message()
            return None if message is None else message.payload

        def wait(seconds: float) -> None:
            wait_readable(cursor, min(seconds, WAIT_S))

        self._cursor, self._began_at, self._events = cursor, position.lsn, 0
        self._reader = ChangeReader(
            Connection(read, wait),
            position,
            self._define,
            messages=self._wanted.messages,
            followed=lambda number: number in self._tables,
            stopped=self._stopped.is_set,
        )

    @property
    def _known(self) -> Catalogue:
        assert self._catalogue is not None
        return self._catalogue

    # Tables

    def _define(self, relation: Relation) -> None:
        """Register a table as it was defined when the changes that follow were made."""
        info = next((table for table in self._followed.values() if table.oid == relation.id), None)
        if info is None:  # another table, or one of the same name that was dropped
            return
        if info.table != relation.table:
            raise Invalid(
                Problem(
                    code="table_renamed",
                    message=f"the table '{info.table}' is now called '{relation.table}'",
                    path="tables",
                    hint=f"use '{relation.table}' in 'tables', and save the pipeline",
                )
            )
        current = self._known.tables().get(relation.table)
        self._tables[relation.id] = self._decoder(relation, info if current is None else current)

    def _table(self, info: TableInfo, published: Published) -> Table:
        """A table as currently defined, with its published columns."""
        relation = self._known.relation(info)
        if published.columns:
            kept = tuple(column for column in relation.columns if column.name in published.columns)
            relation = Relation(relation.id, relation.schema, relation.name, kept, relation.identity)
        return self._decoder(relation, info)

    def _decoder(self, relation: Relation, info: TableInfo) -> Table:
        names = [column.name for column in relation.columns]
        kinds = tuple(self._known.kinds.kind(column.type, column.modifier) for column in relation.columns)
        if info.key and set(info.key) <= set(names):
            keys = tuple(names.index(name) for name in info.key)
        elif relation.identity == "f":  # the whole row, which can't be a key
            keys = ()
        else:
            keys = tuple(i for i, column in enumerate(relation.columns) if column.identity)
        table = Table(relation, kinds, keys, self._form.struct)
        if table.struct is not None:
            for name in check_columns(table):
                if name not in self._warned:
                    self._warned.add(name)
                    self.warn(
                        f"the column '{name}' of the table '{table.name}' is not in 'schema' and is ignored"
                    )
        return table

    # Receiving

    def receive(self, wait_s: float) -> Received | None:
        """The next rows of the snapshot, or the next changes."""
        with said(self._server):
            if self._snapshot is not None:
                return self._chunk(self._snapshot)
            if time.monotonic() - self._looked_at >= LOOK_S:
                self._check_tables()
            return self._changes(wait_s)

    def _check_tables(self) -> None:
        """Detect dropped tables, which PostgreSQL does not report."""
        known, self._looked_at = self._known.tables(), time.monotonic()
        for table in self._followed.values():
            current = known.get(table.table)
            if current is None or current.oid != table.oid:
                raise Unavailable(
                    Problem(
                        code="table_dropped",
                        message=f"the table '{table.table}' was dropped"
                        + ("" if current is None else " and created again: it is read from the start"),
                        path="tables",
                        hint="remove it from 'tables', or create it again",
                    )
                )

    def _chunk(self, snapshot: Snapshot) -> Received | None:
        if not snapshot.left:
            snapshot.end()
            self._snapshot = None
            if self._wanted.snapshot == "only":
                raise Ended
            self._start(snapshot.position)
            return None
        events = snapshot.chunk()
        return Received(events, snapshot.position.text()) if events.num_rows else None

    def _changes(self, wait_s: float) -> Received | None:
        assert self._reader is not None
        batch = self._reader.batch(wait_s)
        if batch.payloads:
            made = batch.assembled(self._form, self._tables)
            if made.events.num_rows:
                self._unconfirmed += 1
                self._events += made.events.num_rows
                return Received(made.events, self._reader.position.text(), made.tx)
        self._beat()
        return None

    def acknowledge(self, received: Received) -> None:
        """Confirm the slot up to the last transaction that is durable as a whole."""
        if self._cursor is None or received.position is None:
            return
        self._unconfirmed = max(0, self._unconfirmed - 1)
        with said(self._server):
            self._confirm(Position.parse(received.position).lsn)

    def _beat(self) -> None:
        """Confirm WAL that had no events for this flow, so that the server can remove it."""
        if self._cursor is None or self._reader is None or self._unconfirmed:
            return
        if time.monotonic() - self._beaten_at >= self._wanted.heartbeat_s:
            self._confirm(self._reader.position.lsn)

    def _confirm(self, lsn: int) -> None:
        assert self._cursor is not None
        self._cursor.send_feedback(flush_lsn=lsn, force=True)  # type: ignore[no-untyped-call]
        self._beaten_at = time.monotonic()

    def lag(self) -> int | None:
        """The estimated backlog in changes: remaining bytes of the log by the average size of a change."""
        asked_at, known = self._lag
        if self._cursor is None or self._reader is None or time.monotonic() - asked_at < LAG_S:
            return known
        with said(self._server):
            at = max(self._cursor.wal_end, self._reader.position.lsn)
            ahead = max(0, self._server_position() - at)
        each = (at - self._began_at) / self._events if self._events else None
        lag = 0 if not ahead else None if each is None else math.ceil(ahead / max(each, 1.0))
        self._lag = (time.monotonic(), lag)
        return lag

    def _server_position(self) -> int:
        row = self._known.one(NOW)
        assert row is not None
        return lsn_number(row[0])

    @property
    def _connections(self) -> list[connection]:
        queries = None if self._catalogue is None else self._catalogue.connection
        return [each for each in (self._connection, queries) if each is not None]

    def stop(self) -> None:
        """Make `open` and `receive` return soon. May be called by any thread."""
        self._stopped.set()
        if self._reader is None:  # a new slot waits for transactions, and a chunk may take long
            for each in self._connections:
                each.cancel()

    def close(self) -> None:
        """Close the connections."""
        for each in self._connections:
            each.close()
        self._catalogue = self._connection = self._cursor = self._snapshot = self._reader = None
        self._tables.clear()
        self._unconfirmed = 0


def _checked(position: Position | None, origin: str) -> Position | None:
    """The position, if it belongs to this database and slot."""
    if position is None or position.origin == origin:
        return position
    raise Invalid(
        Problem(
            code="other_database",
            message=f"the pipeline has been reading '{position.origin}', but is now configured for "
            f"'{origin}'",
            path="url",
            hint="use the previous database and slot, or start the pipeline over",
        )
    )
