"""The receiver of `mysql_cdc`: rows of the snapshot and changes of the log, in the order of the database."""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from penstock.connectors.cdc.changes import READ, Changes, snapshot_id
from penstock.connectors.cdc.envelopes import Origin
from penstock.connectors.mysql_cdc.catalog import Catalog, is_pattern, matches, missing
from penstock.connectors.mysql_cdc.check import requirements
from penstock.connectors.mysql_cdc.encode import Encoder, RowForm
from penstock.connectors.mysql_cdc.feed import ROWS, Event, Feed, Refused
from penstock.connectors.mysql_cdc.idle import IdlePlace
from penstock.connectors.mysql_cdc.lag import Lag
from penstock.connectors.mysql_cdc.log import Log, Part
from penstock.connectors.mysql_cdc.position import Position, Progress
from penstock.connectors.mysql_cdc.server import client, explained, refused
from penstock.connectors.mysql_cdc.snapshot import Chunk, Snapshot
from penstock.connectors.mysql_cdc.start import place_of
from penstock.connectors.mysql_cdc.table_map import Table, name_of, table_of
from penstock.connectors.received import Ended, Received, Receiver
from penstock.errors import Invalid, Problem
from penstock.frames.site import Site

if TYPE_CHECKING:
    from penstock.connectors.mysql_cdc.source import MySqlCdcSource

logger = structlog.get_logger()

MOST_EVENTS, MOST_BYTES = 20_000, 16 * 1024 * 1024
"""Maximum events and bytes that are appended at once; a larger transaction is appended in several parts."""


class BinlogReceiver(Receiver):
    """Reads the binary log of a server as a replica does, and the snapshot over a separate connection."""

    def __init__(self, source: MySqlCdcSource, site: Site) -> None:
        self.source, self.site = source, site
        self._catalog: Catalog | None = None
        self._feed_catalog: Catalog | None = None
        self._snapshot: Snapshot | None = None
        self._chunk: Chunk | None = None
        self._pending: list[str] = []
        self._snapshots = False
        self._events: deque[Event] = deque()
        self._form: RowForm | None = None
        self._lag = Lag()
        self._idle = IdlePlace(site)

    # Connection

    def open(self, position: str | None) -> None:
        try:
            self._open(position)
        except (client().MySQLError, OSError) as error:
            raise explained(error, self.source) from None

    def _open(self, position: str | None) -> None:
        source = self.source
        catalog = self._catalog = Catalog(source.connect())
        problems = list(requirements(catalog, source.place))
        names = catalog.names()
        problems += missing([name for name in source.full_names if not is_pattern(name)], names)
        if problems:
            raise Invalid(*problems)
        self._charsets = catalog.charsets()
        kept = self._idle.after(position, snapshot=source.snapshot != "never")
        self._position = Position.parse(kept) if kept is not None else self._first(catalog)
        self._plan(names)
        origin = Origin("mariadb" if catalog.mariadb else "mysql", self.site.flow, self._about)
        self._encoder = Encoder(source.envelope, source.row_ddl, origin)
        start = self._position.place
        self._log = Log(
            source.full_names, start, self._position.rows, self._describe, self._layout, self._say
        )
        self._feed_catalog = Catalog(source.connect())
        self._feed = Feed(self._feed_catalog.connection, self._server_id(), catalog.mariadb)
        self._feed.start(start)

    def close(self) -> None:
        for catalog in (self._catalog, self._feed_catalog):
            if catalog is not None and catalog.connection.open:
                catalog.connection.close()
        if self._snapshot is not None:
            self._snapshot.close()
        self._catalog = self._feed_catalog = self._snapshot = None

    def _first(self, catalog: Catalog) -> Position:
        """The start position of a new flow."""
        place = place_of(self.source.position, catalog)
        snapshot = None if self.source.snapshot == "never" else Progress(str(place))
        return Position(place, snapshot=snapshot)

    def _plan(self, names: list[str]) -> None:
        """Determine the tables that the snapshot still has to read, a partially read table first."""
        progress = self._position.snapshot
        if self.source.snapshot == "never" or progress is None:
            return
        self._snapshots = True
        wanted = [name for name in names if matches(name, self.source.full_names)]
        self._pending = [name for name in wanted if name not in progress.done]
        self._pending.sort(key=lambda name: name != progress.table)

    def _server_id(self) -> int:
        """The server id of this replica, which differs from flow to flow."""
        return self.source.server_id or 1_000_000_000 + zlib.crc32(self.site.flow.encode()) % 3_000_000_000

    # Events

    def receive(self, wait_s: float) -> Received | None:
        try:
            return self._receive(wait_s)
        except Refused as error:
            raise refused(error.code, error.message, self.source) from None
        except (client().MySQLError, OSError) as error:
            raise explained(error, self.source) from None

    def _receive(self, wait_s: float) -> Received | None:
        until, log = time.monotonic() + wait_s, self._log
        while True:
            if self._snapshots and (rows := self._snapshot_rows()) is not None:
                return rows
            if not self._events:
                waits = not (log.between and len(log.part.changes))
                self._events.extend(self._feed.take(max(until - time.monotonic(), 0.0) if waits else 0.0))
            if not self._events:
                if not waits:
                    return self._received(log.cut())
                if time.monotonic() >= until:
                    self._idle.note(log.between, self._now)
                    return None
                continue
            event = self._events[0]
            if event.type in ROWS and (form := log.layout_of(event)) is not None:
                if self._cuts_before(form):
                    return self._received(log.cut())
                self._form = form
            log.take(self._events.popleft())
            if self._full and log.between:
                return self._received(log.cut())

    @property
    def _full(self) -> bool:
        part = self._log.part
        return len(part.changes) >= MOST_EVENTS or part.bytes >= MOST_BYTES

    def _cuts_before(self, form: RowForm) -> bool:
        """Whether a part has to end before the next rows, because it is full or the columns change.

        A part never ends between the last rows of a transaction and its end: a reader would have to wait for
        that end until the next transaction.
        """
        if not len(self._log.part.changes):
            return False
        other = self._encoder.typed and self._form is not None and form.shape != self._form.shape
        return other or self._full

    def _received(self, part: Part) -> Received:
        batch = self._encoder.batch(part.changes, self._form if self._encoder.typed else None)
        self._lag.count(len(part.changes), part.bytes)
        text = self._now().text()
        self._idle.appended(text)
        return Received(batch, text, tx=tuple(part.marks))

    def _now(self) -> Position:
        """The position after everything that was returned."""
        snapshot = self._position.snapshot
        if snapshot is not None and self._log.created:
            snapshot = replace(snapshot, done=snapshot.done | self._log.created)
        rows = {} if self._log.between else dict(self._log.counts)
        self._position = Position(self._log.place, rows, snapshot)
        return self._position

    # The snapshot

    def _snapshot_rows(self) -> Received | None:
        """The next rows of the snapshot, once the changes before them have been returned."""
        while self._pending and self._log.between:
            progress = self._position.snapshot
            assert progress is not None
            if self._chunk is None:
                if self._snapshot is None:
                    self._snapshot = Snapshot(self.source, self.source.snapshot_chunk_rows)
                name = self._pending[0]
                after = progress.after if progress.table == name else ()
                self._chunk = self._snapshot.read(name, after)
            if not (self._log.known_place and self._log.place.reaches(self._chunk.place)):
                return None
            if len(self._log.part.changes):
                return self._received(self._log.cut())
            chunk, self._chunk = self._chunk, None
            self._position = replace(self._position, snapshot=chunk.then(progress))
            if chunk.last:
                del self._pending[0]
            if chunk.rows:
                return self._chunk_received(chunk, progress.begun)
        if not self._pending:
            if self.source.snapshot == "only":
                raise Ended
            self._snapshots = False
            if self._snapshot is not None:
                self._snapshot.close()
                self._snapshot = None
        return None

    def _chunk_received(self, chunk: Chunk, begun: str) -> Received:
        table, count = chunk.table, len(chunk.rows)
        names = tuple(column.name for column in table.columns)
        form = RowForm(
            names,
            tuple(column.kind for column in table.columns),
            tuple(names.index(name) for name in table.key),
            self._encoder.typed,
        )
        self._check_columns(table.name, names)
        keys = [form.key(row) for row in chunk.rows]
        changes = Changes(
            op=[READ] * count,
            table=[table.name] * count,
            before=[None] * count,
            after=[form.image(row) for row in chunk.rows],
            position=[str(chunk.place)] * count,
            tx=[None] * count,
            time_us=[chunk.time_us] * count,
            id=[snapshot_id(begun, table.name, key or b"") for key in keys],
            key=list(keys),
        )
        text = self._now().text()
        self._idle.appended(text)
        return Received(self._encoder.batch(changes, form), text)

    # Tables

    def _describe(self, body: bytes, where: str) -> Table:
        assert self._catalog is not None
        return table_of(body, self._charsets, where, self._catalog.hints(name_of(body)))

    def _layout(self, table: Table) -> RowForm:
        names = tuple(column.name for column in table.columns)
        self._check_columns(table.name, names)
        return RowForm(names, tuple(column.kind for column in table.columns), table.key, self._encoder.typed)

    def _check_columns(self, table: str, names: tuple[str, ...]) -> None:
        """Warn about columns that the pipeline doesn't have; raise `Invalid` if columns were removed."""
        if not self._encoder.typed:
            return
        assert self._catalog is not None
        wanted = [field.name for field in self._encoder.schema.field("after").type]
        if more := [name for name in names if name not in wanted]:
            text = f"new columns of {table} are not read until the pipeline is saved again: {', '.join(more)}"
            self._say(text, code="column_added", table=table)
        if gone := [name for name in wanted if name not in names]:
            now = self._catalog.table(table)
            present = {column.name for column in now.columns} if now is not None else set()
            if removed := [name for name in gone if name not in present]:
                raise Invalid(_removed(table, removed))

    def _about(self, table: str, position: str, tx: str | None) -> Mapping[str, Any]:
        """The fields of Debezium's `source` for a change."""
        database, _, name = table.partition(".")
        file, _, pos = position.rpartition(":")
        gtid = tx if tx is not None and self._log.place.gtid is not None else None
        return {"db": database, "table": name, "file": file, "pos": int(pos), "row": 0, "gtid": gtid}

    def _say(self, text: str, **fields: Any) -> None:
        logger.warning(text, flow=self.site.flow, **fields)

    # The lag

    def lag(self) -> int | None:
        if self._catalog is None or not self._log.known_place:
            return None
        try:
            return self._lag.events(self._catalog, self._log.place) + len(self._log.part.changes)
        except (client().MySQLError, OSError) as error:
            raise explained(error, self.source) from None


def _removed(table: str, names: list[str]) -> Problem:
    return Problem(
        code="column_removed",
        message=f"'{table}' no longer has the columns {', '.join(map(repr, names))}",
        path="schema",
        hint="save the pipeline again to refresh the columns of the table",
    )
