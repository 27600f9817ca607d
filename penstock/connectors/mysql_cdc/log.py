"""Converts the events of a server's binary log into changes of tables and places in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.connectors.cdc.changes import CREATED, DELETED, TRUNCATED, UPDATED, Changes, change_id
from penstock.connectors.mysql_cdc import feed as events
from penstock.connectors.mysql_cdc.catalog import matches
from penstock.connectors.mysql_cdc.encode import RowForm
from penstock.connectors.mysql_cdc.feed import Event, inflate
from penstock.connectors.mysql_cdc.position import GtidSet, Place
from penstock.connectors.mysql_cdc.rows import PartialRow, ReadRow, Row, partial_row, row_reader, rows_of
from penstock.connectors.mysql_cdc.statements import Statement, mentions, query_of, statement_of
from penstock.connectors.mysql_cdc.table_map import Table, name_of
from penstock.connectors.mysql_cdc.values import REPLACED
from penstock.errors import Invalid, Problem

STANDALONE = 1
"""The flag of a MariaDB GTID whose transaction is only the statement that follows."""


@dataclass
class Known:
    """A table that is read, as defined at the current place in the log."""

    table: Table
    read: ReadRow
    layout: RowForm


@dataclass
class Part:
    """The changes since the last part, and their transactions."""

    changes: Changes = field(default_factory=Changes)
    marks: list[tuple[int, int, str, bool]] = field(default_factory=list)
    bytes: int = 0


class Log:
    """Processes events of the log one by one, and collects their changes in `part`.

    `layout` is called once for each form of a table and may raise `Invalid`. `say` receives warnings.
    """

    def __init__(
        self,
        tables: Sequence[str],
        start: Place,
        done: dict[str, int],
        describe: Callable[[bytes, str], Table],
        layout: Callable[[Table], RowForm],
        say: Callable[..., None],
    ) -> None:
        self.part = Part()
        self.known_place = start.gtid is None
        """Whether file and position refer to this server: GTIDs may come from another server."""
        self.created: set[str] = set()
        """Tables that were created after the start."""
        self.counts: dict[str, int] = {}
        """Number of changes in the current transaction so far, by table."""
        self._tables, self._describe, self._layout, self._say = tables, describe, layout, say
        self._done = done
        self._gtids = None if start.gtid is None else GtidSet(start.gtid)
        self._file, self._pos, self._gigabytes = start.file, start.pos, 0
        self._stood = (start.file, start.pos)
        self._tx: str | None = None
        self._begun = False
        self._numbered = False
        """Whether the transaction has a GTID."""
        self._first = 0
        self._by_id: dict[int, Known | None] = {}
        self._by_form: dict[bytes, Known | None] = {}

    @property
    def place(self) -> Place:
        """The place after the last transaction, and after later events that belong to no transaction."""
        return Place(*self._stood, None if self._gtids is None else str(self._gtids))

    @property
    def between(self) -> bool:
        """Whether the last transaction has ended, and the next has not begun."""
        return self._tx is None

    def layout_of(self, event: Event) -> RowForm | None:
        """The layout of the rows in an event; None if its table is not read."""
        known = self._by_id.get(int.from_bytes(event.body[:6], "little"))
        return None if known is None else known.layout

    def cut(self) -> Part:
        """Return the changes so far and start a new part. A transaction may continue in the next part."""
        if self._tx is not None and len(self.part.changes) > self._first:
            self.part.marks.append((self._first, len(self.part.changes), self._tx, False))
        self._first, part = 0, self.part
        self.part = Part()
        return part

    def take(self, event: Event) -> None:
        """Process an event of the log."""
        kind = event.type
        if kind in events.COMPRESSED:
            event = inflate(event)
            kind = event.type
        self._follow(event)
        if kind in events.ROWS:
            self._rows(event)
        elif kind == events.TABLE_MAP:
            self._table(event)
        elif kind == events.XID:
            self._end()
        elif kind == events.QUERY:
            self._query(event)
        elif kind == events.MARIADB_GTID:
            number, domain = (
                int.from_bytes(event.body[:8], "little"),
                int.from_bytes(event.body[8:12], "little"),
            )
            self._begin(f"{domain}-{event.server}-{number}")
            self._begun = not event.body[12] & STANDALONE
        elif kind == events.GTID:
            self._begin(f"{_uuid(event.body[1:17])}:{int.from_bytes(event.body[17:25], 'little')}")
        elif kind == events.ANONYMOUS_GTID:
            self._begin(f"{self._file}:{self._pos}", numbered=False)
        elif kind == events.XA_PREPARE:
            if self.counts:
                raise Invalid(_xa(self._where()))
            self._end()
        elif kind in UNSUPPORTED:
            raise Invalid(_unsupported(UNSUPPORTED[kind], self._where()))
        elif self._tx is None:
            self._stood = (self._file, self._pos)

    def _follow(self, event: Event) -> None:
        """Track the place in the log file."""
        if event.type == events.ROTATE:
            self._file, self._gigabytes = event.body[8:].decode(), 0
            self._pos = int.from_bytes(event.body[:8], "little")
            self.known_place = True
        elif event.type in (events.HEARTBEAT, events.HEARTBEAT_V2):
            if event.end and event.type == events.HEARTBEAT:
                self._pos = max(self._pos, self._gigabytes + event.end)
        elif event.end and not event.flags & events.ARTIFICIAL:
            if self._gigabytes + event.end < self._pos:  # `end` has 32 bits, and files may be larger
                self._gigabytes += 1 << 32
            self._pos = self._gigabytes + event.end

    def _begin(self, tx: str, *, numbered: bool = True) -> None:
        self._tx, self._begun, self._first = tx, False, len(self.part.changes)
        self._numbered = numbered
        self.counts = {}

    def _end(self) -> None:
        """End the current transaction."""
        tx = self._tx
        if tx is not None:
            if len(self.part.changes) > self._first:
                self.part.marks.append((self._first, len(self.part.changes), tx, True))
            if self._gtids is not None and self._numbered:
                self._gtids.add(tx)
        self._tx, self._begun, self.counts, self._done = None, False, {}, {}
        self._by_id.clear()
        self._stood = (self._file, self._pos)

    def _table(self, event: Event) -> None:
        form = event.body[8:]
        if form not in self._by_form:
            self._by_form[form] = self._known(event.body)
        self._by_id[int.from_bytes(event.body[:6], "little")] = self._by_form[form]

    def _known(self, body: bytes) -> Known | None:
        if not matches(name_of(body), self._tables):
            return None
        table = self._describe(body, self._where())
        return Known(table, row_reader(table), self._layout(table))

    def _rows(self, event: Event) -> None:
        body = event.body
        known = self._by_id.get(int.from_bytes(body[:6], "little"))
        if known is None:
            return
        at = 8 + (int.from_bytes(body[8:10], "little") if event.type in events.ROWS_V2 else 0)
        update, name, replaced = event.type in events.UPDATES, known.table.name, REPLACED[0]
        try:
            rows = rows_of(body, at, len(known.table.columns), known.read, update=update)
        except PartialRow:
            raise partial_row(name, self._where()) from None
        if REPLACED[0] != replaced:
            text = (
                f"{name}: a text contains bytes that are invalid in its character set; they are read as "
                "U+FFFD"
            )
            self._say(text, code="undecodable_text", place=self._where())
        self.part.bytes += len(body)
        number = self.counts.get(name, 0)
        self.counts[name] = number + (len(rows) // 2 if update else len(rows))
        skipped = min(self._done.get(name, 0), self.counts[name]) - number
        if skipped > 0:
            number, rows = number + skipped, rows[skipped * (1 + update) :]
        if not rows:
            return
        if update:
            self._updated(event, known, rows, number)
        else:
            op = CREATED if event.type in events.WRITES else DELETED
            self._add(event, known, op, rows, number)

    def _add(self, event: Event, known: Known, op: str, rows: list[Row], number: int) -> None:
        changes, count, layout = self.part.changes, len(rows), known.layout
        images, nothing = list(map(layout.image, rows)), [None] * count
        changes.op += [op] * count
        changes.before += images if op == DELETED else nothing
        changes.after += nothing if op == DELETED else images
        changes.key += map(layout.key, rows)
        self._rest(event, known.table.name, number, count)

    def _updated(self, event: Event, known: Known, rows: list[Row], number: int) -> None:
        layout, changes = known.layout, self.part.changes
        old, new = rows[::2], rows[1::2]
        old_keys, new_keys = list(map(layout.key, old)), list(map(layout.key, new))
        if old_keys == new_keys:
            changes.op += [UPDATED] * len(new)
            changes.before += map(layout.image, old)
            changes.after += map(layout.image, new)
            changes.key += new_keys
            self._rest(event, known.table.name, number, len(new))
            return
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            if old_keys[i] == new_keys[i]:
                self._updated(event, known, [before, after], number + i)
                continue
            # A consumer that applies events by key has to delete the old key.
            self._add(event, known, DELETED, [before], number + i)
            self._add(event, known, CREATED, [after], number + i)
            changes.id[-1] += "+"

    def _rest(self, event: Event, table: str, number: int, count: int) -> None:
        changes, tx = self.part.changes, self._tx or self._where()
        changes.table += [table] * count
        changes.position += [self._where()] * count
        changes.tx += [tx] * count
        changes.time_us += [event.time_s * 1_000_000] * count
        changes.id += [change_id(tx, table, number + i) for i in range(count)]

    def _query(self, event: Event) -> None:
        schema, text = query_of(event.body)
        found = statement_of(text, schema)
        if found.what == "begin":
            if self._tx is None:
                self._begin(self._where(), numbered=False)
            self._begun = True
            return
        if found.what in ("rollback", "undone") and self.counts:
            raise Invalid(_rolled_back(self._where()))
        if found.what in ("emptied", "created", "altered", "written"):
            self._statement(event, found, text)
        if found.what in ("commit", "rollback") or not self._begun:
            self._end()

    def _statement(self, event: Event, found: Statement, text: str) -> None:
        tables = [name for name in found.tables if matches(name, self._tables)]
        if found.what == "emptied":
            named = self._in_database(found.database) if found.database is not None else tables
            for name in named:
                self._emptied(event, name)
        elif found.what == "created":
            self.created.update(tables)
        elif found.what == "altered" and tables:
            self._say(
                f"{', '.join(tables)}: {' '.join(text.split())[:200]}",
                code="table_altered",
                place=self._where(),
            )
        elif found.what == "written":
            names = [name for name in self._tables if mentions(text, name) or "*" in name]
            if names:
                raise Invalid(_statement_based(names[0], self._where()))

    def _in_database(self, database: str) -> list[str]:
        known = {each.table.name for each in self._by_form.values() if each is not None} | set(self._tables)
        return [name for name in sorted(known) if name.partition(".")[0] == database and "*" not in name]

    def _emptied(self, event: Event, name: str) -> None:
        """Add a change that removes all rows of a table."""
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        if number < self._done.get(name, 0):
            return
        changes = self.part.changes
        changes.op.append(TRUNCATED)
        changes.before.append(None)
        changes.after.append(None)
        changes.key.append(None)
        self._rest(event, name, number, 1)

    def _where(self) -> str:
        return f"{self._file}:{self._pos}"


UNSUPPORTED = {
    events.PARTIAL_UPDATE: "partial JSON documents (binlog_row_value_options = '')",
    events.PAYLOAD: "compressed transactions (binlog_transaction_compression = OFF)",
    events.TAGGED_GTID: "GTIDs with tags",
}


def _uuid(raw: bytes) -> str:
    from uuid import UUID

    return str(UUID(bytes=raw))


def _unsupported(what: str, where: str) -> Problem:
    return Problem(
        code="unsupported_log",
        message=f"unsupported content in the binary log at {where}: {what}",
        path="tables",
        hint="change the setting of the server, and start over",
    )


def _xa(where: str) -> Problem:
    return Problem(
        code="xa_transaction",
        message=f"the transaction at {where} was prepared with XA PREPARE: at that point of the log it is "
        "unknown whether it was committed",
        path="tables",
        hint="write to these tables without XA, or with XA COMMIT … ONE PHASE, and start over",
    )


def _rolled_back(where: str) -> Problem:
    return Problem(
        code="rolled_back",
        message=f"the transaction that ends at {where} was rolled back after changes to tables that can't "
        "be rolled back",
        path="tables",
        hint="use InnoDB for all tables of a transaction, and start over",
    )


def _statement_based(table: str, where: str) -> Problem:
    return Problem(
        code="statement_in_log",
        message=f"a change at {where}, perhaps of '{table}', was logged as a statement: its rows are unknown",
        path="tables",
        hint="set binlog_format = ROW, also in the sessions that write, and start over",
    )
