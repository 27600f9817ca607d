"""The messages of `pgoutput`, without a server: batches, parts of transactions, repeats."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.postgres_cdc import changes as module
from penstock.connectors.postgres_cdc.assembly import Assembled
from penstock.connectors.postgres_cdc.changes import ChangeReader, Connection
from penstock.connectors.postgres_cdc.events import Form
from penstock.connectors.postgres_cdc.kinds import BYTEA, FLOAT8, INT8, NUMERIC, TIMESTAMPTZ, Kind
from penstock.connectors.postgres_cdc.position import Position, lsn_number, lsn_text
from penstock.connectors.postgres_cdc.tables import Table
from penstock.connectors.postgres_cdc.wire import Column, Relation

TEXT = 25
ID = Column("id", INT8, -1, True)
NAME = Column("name", TEXT)
TABLE = Relation(7, "public", "t", (ID, NAME))


class Unchanged:
    """A large value that was not sent."""


def begin(commit: int, xid: int = 1) -> bytes:
    return b"B" + struct.pack(">QqI", commit, 0, xid)


def commit(at: int, end: int) -> bytes:
    return b"C" + struct.pack(">BQQq", 0, at, end, 0)


def relation(table: Relation) -> bytes:
    made = b"R" + struct.pack(">I", table.id) + f"{table.schema}\0{table.name}\0".encode()
    made += table.identity.encode() + struct.pack(">H", len(table.columns))
    for column in table.columns:
        made += bytes([column.identity]) + column.name.encode() + b"\0"
        made += struct.pack(">Ii", column.type, column.modifier)
    return made


def row(*values: Any) -> bytes:
    made = struct.pack(">H", len(values))
    for value in values:
        if value is None:
            made += b"n"
        elif value is Unchanged:
            made += b"u"
        else:
            text = str(value).encode()
            made += b"t" + struct.pack(">I", len(text)) + text
    return made


def insert(*values: Any, table: int = 7) -> bytes:
    return b"I" + struct.pack(">I", table) + b"N" + row(*values)


def update(old: tuple[bytes, tuple[Any, ...]] | None, *values: Any) -> bytes:
    before = b"" if old is None else old[0] + row(*old[1])
    return b"U" + struct.pack(">I", 7) + before + b"N" + row(*values)


def delete(*values: Any, mark: bytes = b"K") -> bytes:
    return b"D" + struct.pack(">I", 7) + mark + row(*values)


def truncate(*tables: int) -> bytes:
    return b"T" + struct.pack(">IB", len(tables), 0) + struct.pack(f">{len(tables)}I", *tables)


def message(prefix: str, content: bytes, at: int, *, transactional: bool) -> bytes:
    return (
        b"M"
        + struct.pack(">BQ", transactional, at)
        + f"{prefix}\0".encode()
        + struct.pack(">I", len(content))
        + content
    )


def transaction(at: int, *changes: bytes, xid: int = 1) -> list[bytes]:
    return [begin(at, xid), *changes, commit(at, at + 8)]


class Server:
    """Sends messages, and decodes what the reader makes of them."""

    def __init__(
        self, sent: Iterable[bytes], position: Position, form: Form | None = None, **options: Any
    ) -> None:
        left = iter(list(sent))
        self.tables: dict[int, Table] = {}
        self.form = form or Form("native", "db", "slot", messages=bool(options.get("messages")))
        self.reader = ChangeReader(
            Connection(lambda: next(left, None), lambda seconds: None),
            position,
            self.define,
            followed=lambda number: number in self.tables,
            **options,
        )

    def define(self, found: Relation) -> None:
        kinds = tuple(Kind(column.type, column.modifier) for column in found.columns)
        keys = tuple(i for i, column in enumerate(found.columns) if column.identity)
        if found.id == 7:
            self.tables[found.id] = Table(found, kinds, keys, self.form.struct)

    def batch(self) -> Assembled | None:
        found = self.reader.batch(0.0)
        if not found.payloads:
            return None
        return found.assembled(self.form, self.tables)

    def batches(self) -> list[tuple[Assembled, Position]]:
        made = []
        while (batch := self.batch()) is not None:
            made.append((batch, self.reader.position))
        return made

    def events(self) -> list[dict[str, Any]]:
        return [event for batch, _ in self.batches() for event in batch.events.to_pylist()]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 2)
    monkeypatch.setattr(module, "PART_S", 0.0)


def ids(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


START = Position(100, done=frozenset({"public.t"}), origin="here")


def test_changes_have_their_op_rows_key_and_transaction() -> None:
    sent = [
        relation(TABLE),
        *transaction(
            200,
            insert(1, 'a\n"b"'),
            update(None, 1, None),
            update((b"K", (1, None)), 2, "c"),
            delete(2, None),
            truncate(7, 8),
            xid=9,
        ),
    ]
    ((batch, position),) = Server(sent, START).batches()
    events = batch.events.to_pylist()
    assert [event["op"] for event in events] == list("cudcdt")
    assert [event["after"] and json.loads(event["after"]) for event in events] == [
        {"id": 1, "name": 'a\n"b"'}, {"id": 1, "name": None}, None, {"id": 2, "name": "c"}, None, None,
    ]  # fmt: skip
    assert [event["before"] for event in events] == [None, None, '{"id":1}', None, '{"id":2}', None]
    assert [event["_key"] for event in events] == [b'{"id":1}'] * 3 + [b'{"id":2}'] * 2 + [None]
    assert {event["table"] for event in events} == {"public.t"}
    assert {event["tx"] for event in events} == {"9@0/C8"}
    assert ids(events) == ["0/C8:0", "0/C8:1", "0/C8:2-old", "0/C8:2", "0/C8:3", "0/C8:4"]
    assert batch.tx == ((0, 6, "9@0/C8", True),)
    assert position == START.after(208)


def test_an_update_of_the_key_deletes_the_old_row() -> None:
    """Also in structs, and where the whole row is the identity."""
    full = Relation(7, "public", "t", (ID, Column("name", TEXT, -1, True)), "f")
    form = Form("native", "db", "slot", "id BIGINT, name STRING")
    sent = [
        relation(full),
        *transaction(
            200,
            update((b"O", (1, "a")), 1, "b"),
            update((b"O", (1, "b")), 2, Unchanged),
            delete(2, "b", mark=b"O"),
            xid=3,
        ),
        *transaction(300, delete(9, None, mark=b"O"), xid=4),
    ]
    server = Server(sent, START, form)
    server.define = lambda found: server.tables.update(
        {7: Table(found, (Kind(INT8), Kind(TEXT)), (0,), form.struct)}
    )  # type: ignore[method-assign]
    server.reader._define = server.define
    ((batch, _),) = server.batches()
    events = batch.events.to_pylist()
    assert [event["op"] for event in events] == list("udcdd")
    assert [event["before"] for event in events[:3]] == [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, None]
    assert [event["after"] for event in events[:3]] == [{"id": 1, "name": "b"}, None, {"id": 2, "name": "b"}]
    assert batch.tx == ((0, 4, "3@0/C8", True), (4, 5, "4@0/12C", True))


def test_a_transaction_that_was_appended_is_skipped() -> None:
    sent = [relation(TABLE), *transaction(200, insert(1, "a")), *transaction(300, insert(2, "b"))]
    assert ids(Server(sent, START.after(208)).events()) == ["0/12C:0"]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_a_large_transaction_comes_in_parts_and_goes_on_after_each(count: int) -> None:
    sent = [
        relation(TABLE), *transaction(200, *(insert(i, "x") for i in range(count)), xid=5),
        *transaction(300, insert(99, "y"), xid=6),
    ]  # fmt: skip
    parts = Server(sent, START).batches()
    whole = [event for batch, _ in parts for event in batch.events.to_pylist()]
    assert ids(whole) == [f"0/C8:{i}" for i in range(count)] + ["0/12C:0"]
    marks = [mark for batch, _ in parts for mark in batch.tx if mark[2] == "5@0/C8"]
    assert [ends for *_, ends in marks] == [False] * (len(marks) - 1) + [True]
    assert sum(end - first for first, end, *_ in marks) == count

    done: list[str] = []
    for batch, position in parts:
        done += ids(batch.events.to_pylist())
        again = Server(sent, Position.parse(position.text())).events()
        assert done + ids(again) == ids(whole)


@pytest.mark.usefixtures("small_batches")
def test_a_transaction_that_stalls_after_its_last_change_still_ends() -> None:
    first = [relation(TABLE), begin(200, 5), insert(1, "a"), insert(2, "b")]
    server = Server(first, START)
    ((part, position),) = server.batches()
    assert part.tx == ((0, 2, "5@0/C8", False),)
    rest = [
        relation(TABLE),
        *transaction(200, insert(1, "a"), insert(2, "b"), xid=5),
        *transaction(300, insert(3, "c")),
    ]
    ((batch, _),) = Server(rest, position).batches()
    assert ids(batch.events.to_pylist()) == ["0/12C:0"]
    assert batch.tx == ((0, 0, "5@0/C8", True), (0, 1, "1@0/12C", True))


def test_changes_belong_to_the_table_as_it_was() -> None:
    wider = Relation(7, "public", "t", (ID, NAME, Column("more", TEXT)))
    sent = [
        relation(TABLE), begin(200), insert(1, "a"), relation(wider), insert(2, "b", "c"), commit(200, 208),
    ]  # fmt: skip
    first, second = Server(sent, START).batches()
    assert first[0].events["after"].to_pylist() == ['{"id":1,"name":"a"}']
    assert second[0].events["after"].to_pylist() == ['{"id":2,"name":"b","more":"c"}']
    assert [first[0].tx[0][3], second[0].tx[0][3]] == [False, True]


def test_tables_that_are_not_followed_are_left_out() -> None:
    other = Relation(8, "public", "other", (ID,))
    sent = [
        relation(TABLE), relation(other),
        *transaction(200, insert(5, table=8), insert(1, "a"), insert(6, table=8)),
        *transaction(300, insert(7, table=8)),
    ]  # fmt: skip
    ((batch, position),) = Server(sent, START).batches()
    assert ids(batch.events.to_pylist()) == ["0/C8:1"]
    assert batch.tx == ((0, 1, "1@0/C8", True),)
    assert position.lsn == 308


def test_large_values_that_were_not_sent_are_named() -> None:
    sent = [relation(TABLE), *transaction(200, insert(1, "a"), update(None, 1, Unchanged))]
    events = Server(sent, START).events()
    assert [event["unchanged"] for event in events] == [None, ["name"]]
    assert events[1]["after"] == '{"id":1,"name":null}'
    debezium = Server(sent, START, Form("debezium", "db", "slot")).events()
    assert json.loads(debezium[1]["value"])["after"]["name"] == "__debezium_unavailable_value"


def test_large_values_come_from_the_old_row_if_the_whole_row_is_the_identity() -> None:
    full = Relation(7, "public", "t", (ID, Column("name", TEXT, -1, True)), "f")
    sent = [
        relation(full),
        *transaction(
            200, insert(1, "a"), delete(5, "gone", mark=b"O"), update((b"O", (1, "large")), 1, Unchanged)
        ),
    ]
    events = Server(sent, START).events()
    assert events[2]["after"] == '{"id":1,"name":"large"}'
    assert events[1]["before"] == '{"id":5,"name":"gone"}'
    assert all(event["unchanged"] is None for event in events)


def test_messages_inside_and_outside_of_transactions() -> None:
    sent = [
        relation(TABLE),
        *transaction(
            200,
            insert(1, "a"),
            message("outbox", b"\xff", 190, transactional=True),
            message("else", b"no", 195, transactional=True),
        ),
        message("outbox", b"alone", 250, transactional=False),
    ]
    server = Server(sent, START, messages=["out*"])
    ((batch, position),) = server.batches()
    events = batch.events.to_pylist()
    assert [event["op"] for event in events] == ["c", "m", "m"]
    assert [event["message"] for event in events[1:]] == [
        {"prefix": "outbox", "content": b"\xff"}, {"prefix": "outbox", "content": b"alone"},
    ]  # fmt: skip
    assert batch.tx == ((0, 2, "1@0/C8", True),)
    assert position.lsn == 251
    assert Server(sent, position, messages=["out*"]).events() == []


def test_a_value_that_does_not_fit_is_a_fault_of_its_row_alone() -> None:
    form = Form("native", "db", "slot", "id BIGINT, n DECIMAL(4,2)")
    table = Relation(7, "public", "t", (ID, Column("n", NUMERIC, ((4 << 16) | 2) + 4)))
    sent = [relation(table), *transaction(200, insert(1, "1.25"), insert(2, "NaN"), insert(3, "-3.10"))]
    events = Server(sent, START, form).events()
    assert [event["fault"] and event["fault"]["code"] for event in events] == [None, "wrong_type", None]
    assert events[1]["fault"]["row"] == '{"id":2,"n":"NaN"}'
    assert "column 'n'" in events[1]["fault"]["reason"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind(1, -1, Kind(INT8)), "{1,NULL,-3}", "[1,null,-3]"),
        (Kind(1, -1, Kind(TEXT)), '{a,"b c","d\\"e\\\\f",""}', '["a","b c","d\\"e\\\\f",""]'),
        (Kind(1, -1, Kind(TEXT)), '{NULL,"NULL"}', '[null,"NULL"]'),
        (Kind(1, -1, Kind(INT8)), "{{1,2},{3,4}}", "[[1,2],[3,4]]"),
        (Kind(1, -1, Kind(INT8)), "[0:1]={5,6}", "[5,6]"),
        (Kind(1, -1, Kind(TEXT)), "{}", "[]"),
        (Kind(1, -1, Kind(FLOAT8)), "{NaN,1.5,-Infinity}", '["NaN",1.5,"-Infinity"]'),
        (Kind(NUMERIC), "123456789012345678901234567890.10", "123456789012345678901234567890.10"),
        (Kind(NUMERIC), "NaN", '"NaN"'),
        (Kind(BYTEA), "\\x00ff", '"AP8="'),
        (Kind(TIMESTAMPTZ), "2026-01-31 12:00:00.5+00", '"2026-01-31T12:00:00.5Z"'),
        (Kind(TIMESTAMPTZ), "infinity", '"infinity"'),
        (Kind(TEXT), "tab\tquote\"é", '"tab\\tquote\\"é"'),
    ],
)  # fmt: skip
def test_values_as_json(kind: Kind, text: str, value: str) -> None:
    assert kind.json(pa.array([text, None])).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("modifier", "ddl"),
    [
        (-1, "STRING"),
        (((10 << 16) | 2) + 4, "DECIMAL(10,2)"),
        (((38 << 16) | 0) + 4, "DECIMAL(38,0)"),
        (((39 << 16) | 2) + 4, "STRING"),
        (((2 << 16) | (-3 & 0x7FF)) + 4, "STRING"),
        (((3 << 16) | 5) + 4, "STRING"),
    ],
)
def test_digits_of_a_numeric(modifier: int, ddl: str) -> None:
    assert Kind(NUMERIC, modifier).ddl == ddl


def test_positions_survive_as_text() -> None:
    position = Position(1 << 40, 5, 6, frozenset({"a.b"}), "a.c", ("1", "x'\n"), "here")
    assert Position.parse(position.text()) == position
    assert lsn_number(lsn_text((3 << 32) | 0xAB)) == (3 << 32) | 0xAB
