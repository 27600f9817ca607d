from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.connectors.received import Ended, Receiver
from penstock.connectors.sql.reading import SqlReceiver
from penstock.connectors.sql.sink import SqlSink
from penstock.connectors.sql.source import SqlSource
from penstock.connectors.sql.types import JSON
from penstock.engine.plan.connections import probe_connector
from penstock.errors import Invalid
from tests.connectors.test_sql_sink import ALL, EMPTY, FULL, ZERO, Table, batch, seen
from tests.databases import NAMES, Base, MariaBase, PostgresBase, database
from tests.flows import NO_STREAMS

pytestmark = pytest.mark.slow


@pytest.fixture(params=NAMES)
def base(request: pytest.FixtureRequest) -> Iterator[Base]:
    with database(request.param, request) as made:
        yield made


Open = Callable[..., Receiver]


@pytest.fixture
def reader(base: Base) -> Iterator[Open]:
    opened: list[Receiver] = []

    def open_(position: str | None = None, **fields: Any) -> Receiver:
        given = {"mode": "snapshot"} if "column" not in fields else {"lag_ms": 0, "poll_ms": 10}
        source = SqlSource.model_validate(base.spec(**given, **fields))
        opened.append(source.receiver(NO_STREAMS))
        opened[-1].open(position)
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def rest(receiver: Receiver, pages: int = 1000) -> tuple[list[dict[str, Any]], str | None]:
    """All rows that are there, and the last position."""
    found: list[dict[str, Any]] = []
    position = None
    for _ in range(pages):
        try:
            received = receiver.receive(0.05)
        except Ended:
            break
        if received is None:
            break
        found += received.events.to_pylist()
        position = received.position
    return found, position


def test_types_are_those_of_the_table(base: Base, reader: Open) -> None:
    sink = SqlSink.model_validate(base.spec(table="t", create="if_missing", mode="upsert", key=["id"]))
    writer = sink.open(NO_STREAMS)
    writer.write(Table(pa.Table.from_pylist([FULL, EMPTY, ZERO], ALL)), batch())
    writer.close()
    receiver = reader(table="t")
    assert isinstance(receiver, SqlReceiver)
    kinds = {field.name: field.type for field in receiver.schema}
    rows, _ = rest(receiver)
    wide = {field.name: field.type for field in ALL} | {"nested": pa.string()}
    if base.kind == "postgres":
        assert kinds == wide | {"tiny": pa.int16()}
    elif base.kind == "mariadb":
        assert kinds == wide | {"moment": pa.timestamp("us")}
    else:
        whole = dict.fromkeys(("tiny", "small", "whole"), pa.int64())
        moments = {"local": pa.timestamp("us", "UTC")}
        assert kinds == wide | whole | moments | {"single": pa.float64(), "exact": pa.string()}
    for row in rows:
        want = {FULL["id"]: FULL, 1: EMPTY, 0: ZERO}[row["id"]]
        got = {**row, "nested": {JSON: row["nested"]}}
        if got["exact"] is not None:
            got["exact"] = Decimal(got["exact"])
        for name in ("moment", "local"):
            if got[name] is not None:
                got[name] = got[name].replace(tzinfo=dt.UTC if name == "moment" else None)
        assert got == want
    assert len(rows) == 3


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "whole": st.none() | st.integers(-(2**31), 2**31 - 1),
            "number": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "exact": st.none()
            | st.decimals(
                allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28), max_value=10**28
            ),
            "yes": st.none() | st.booleans(),
            "words": st.none() | TEXT,
            "raw": st.none() | st.binary(max_size=20),
            "day": st.none() | st.dates(dt.date(1000, 1, 1)),
            "moment": st.none() | st.datetimes(dt.datetime(1000, 1, 1), timezones=st.just(dt.UTC)),
            "local": st.none() | st.datetimes(dt.datetime(1000, 1, 1)),
        }
    ),
    max_size=5,
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=ROWS)
def test_any_value_is_read_back_by_another_client(base: Base, rows: list[dict[str, Any]]) -> None:
    table = f"t{time.monotonic_ns()}"
    schema = pa.schema([ALL.field(name) for name in ("id", *ROWS_NAMES)])
    events = [{"id": i, **row} for i, row in enumerate(rows)]
    sink = SqlSink.model_validate(base.spec(table=table, create="if_missing")).open(NO_STREAMS)
    done = sink.write(Table(pa.Table.from_pylist(events, schema)), batch(time.monotonic_ns()))
    sink.close()
    assert list(done.rejected) == []
    found = base.rows(f"SELECT {', '.join(schema.names)} FROM {table} ORDER BY id")
    named = [dict(zip(schema.names, row, strict=True)) for row in found]
    assert [{n: seen(v, n, base) for n, v in row.items()} for row in named] == events


ROWS_NAMES = ("whole", "number", "exact", "yes", "words", "raw", "day", "moment", "local")


def test_ties_at_the_end_of_a_page(base: Base, reader: Open) -> None:
    stamp = "TIMESTAMP(6) NULL" if base.kind == "mariadb" else "TIMESTAMP"
    base.run(f"CREATE TABLE t (name VARCHAR(9), id INTEGER PRIMARY KEY, at {stamp})")
    rows = ", ".join(f"('n', {i}, '2026-01-01 00:00:00.00000{(99 - i) // 10}')" for i in range(100))
    base.run(f"INSERT INTO t VALUES {rows}, ('never', 1000, NULL)")
    receiver = reader(table="t", column="at", page=7)
    first, position = rest(receiver, pages=5)
    assert len(first) == 35
    second, position = rest(reader(position, table="t", column="at", page=7))
    assert sorted(row["id"] for row in first + second) == list(range(100))
    times = [row["at"] for row in first + second]
    assert times == sorted(times)
    base.run("INSERT INTO t VALUES ('late', 200, '2026-01-01 00:00:00.000009')")
    found, _ = rest(reader(position, table="t", column="at"))
    assert [row["name"] for row in found] == ["late"]
    other, _ = rest(reader(position, table="t", column="id"))
    assert len(other) == 102, "another column: from the beginning"


def test_a_query(base: Base, reader: Open) -> None:
    base.run("CREATE TABLE t (id BIGINT PRIMARY KEY, price DECIMAL(10, 2), name VARCHAR(9))")
    base.run("INSERT INTO t VALUES (1, 1.50, 'a'), (2, 2.25, 'b'), (3, NULL, 'a')")
    query = "SELECT name AS who, id, price, id * 2 AS twice FROM t WHERE name = 'a';"
    receiver = reader(query=query, column="id", key=[])
    assert isinstance(receiver, SqlReceiver)
    rows, position = rest(receiver)
    assert rows == [
        {"who": "a", "id": 1, "price": Decimal("1.50"), "twice": 2},
        {"who": "a", "id": 3, "price": None, "twice": 6},
    ]
    assert receiver.schema.field("price").type == pa.decimal128(10, 2)
    base.run("INSERT INTO t VALUES (4, 3, 'a')")
    (new,), _ = rest(reader(position, query=query, column="id", key=[]))
    assert new["id"] == 4
    with pytest.raises(Invalid) as refused:
        reader(query="SELECT nothing FROM nowhere", column="id", key=[])
    assert refused.value.problems[0].hint


def test_chosen_columns_and_a_value_that_does_not_fit(base: Base, reader: Open) -> None:
    base.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, name VARCHAR(9))",
        "INSERT INTO t VALUES (1, 5, 'a')",
    )
    assert rest(reader(table="t", schema="n SMALLINT"))[0] == [{"n": 5}]
    base.run("INSERT INTO t VALUES (2, 70000, 'a')")
    with pytest.raises(Invalid) as refused:
        rest(reader(table="t", schema="n SMALLINT"))
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("wrong_value", "schema")
    assert "70000" in problem.message
    with pytest.raises(Invalid) as refused:
        reader(table="t", schema="nam STRING")
    assert refused.value.problems[0].code == "unknown_column"


def test_rows_that_commit_late_are_waited_for(base: Base, reader: Open) -> None:
    if base.kind == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    base.run("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    late: Any
    if isinstance(base, PostgresBase):
        late = psycopg.connect(base.url)
        late.execute("INSERT INTO t VALUES (1)")
    else:
        assert isinstance(base, MariaBase)
        late = base.server.connect(base.name, autocommit=False)
        late.cursor().execute("INSERT INTO t VALUES (1)")
    base.run("INSERT INTO t VALUES (2)")
    source = SqlSource.model_validate(base.spec(table="t", column="id", lag_ms=500, poll_ms=10))
    receiver = source.receiver(NO_STREAMS)
    receiver.open(None)
    began = time.monotonic()
    assert receiver.receive(0.05) is None
    late.commit()
    late.close()
    while (received := receiver.receive(0.05)) is None:
        assert time.monotonic() - began < 10
    assert time.monotonic() - began >= 0.5
    assert received.events.column("id").to_pylist() == [1, 2]
    base.run("INSERT INTO t VALUES (3), (20), (100)")
    while (received := receiver.receive(0.05)) is None:
        assert time.monotonic() - began < 20
    assert received.events.column("id").to_pylist() == [3, 20, 100]
    receiver.close()


def test_keys_of_several_types(base: Base, reader: Open) -> None:
    raw = {"postgres": "BYTEA", "mariadb": "VARBINARY(9)", "sqlite": "BLOB"}[base.kind]
    base.run(f"CREATE TABLE t (n DECIMAL(10, 2), raw {raw}, word VARCHAR(9), PRIMARY KEY (word, raw))")
    literal = {"postgres": "'\\x{:02x}'", "mariadb": "x'{:02x}'", "sqlite": "x'{:02x}'"}[base.kind]
    rows = [(n * 2.5, literal.format(200 + n % 3), f"it''s {n // 3}") for n in range(20)]
    base.run("INSERT INTO t VALUES " + ", ".join(f"({n}, {each}, '{word}')" for n, each, word in rows))
    for fields in ({}, {"column": "word"}, {"column": "n", "key": ["raw"]}):
        first, position = rest(reader(table="t", page=4, **fields), pages=2)
        second, _ = rest(reader(position, table="t", page=4, **fields))
        assert sorted(row["n"] for row in first + second) == [Decimal(n) * 5 / 2 for n in range(20)]
        if fields.get("column") == "n":
            assert [row["n"] for row in first + second] == [Decimal(n) * 5 / 2 for n in range(20)]


def test_a_floating_point_number_is_no_position(base: Base, reader: Open) -> None:
    base.run("CREATE TABLE t (at DOUBLE PRECISION, id INTEGER PRIMARY KEY)")
    with pytest.raises(Invalid) as refused:
        reader(table="t", column="at")
    assert [(p.code, p.path) for p in refused.value.problems] == [("wrong_type", "column")]


def test_a_table_without_a_key_needs_one(base: Base, reader: Open) -> None:
    base.run("CREATE TABLE t (id BIGINT, n BIGINT)", "INSERT INTO t VALUES (1, 1), (1, 2)")
    with pytest.raises(Invalid) as refused:
        reader(table="t", column="id")
    assert [(p.code, p.path) for p in refused.value.problems] == [("no_unique_key", "key")]
    assert len(rest(reader(table="t", column="id", key=["n"], page=1))[0]) == 2
    assert len(rest(reader(table="t", key=["id", "n"], page=1))[0]) == 2


def test_the_connection_test_has_a_sample(base: Base) -> None:
    base.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(9))", "INSERT INTO orders VALUES (1, 'a')"
    )

    def probe(**fields: Any) -> Any:
        return probe_connector("source", base.spec(**fields), NO_STREAMS, _NoSpark(), {})  # type: ignore[arg-type]

    good = probe(table="orders", column="id")
    assert good.problems == []
    assert good.offers == {"tables": ["orders"], "columns": ["id", "name"]}
    assert good.sample == [{"id": "1", "name": "a"}]
    (wrong,) = probe(table="orders", column="idd").problems
    assert (wrong.code, wrong.path, wrong.hint) == ("unknown_column", "column", "did you mean 'id'?")
    (wrong,) = probe(table="order", column="id").problems
    assert (wrong.code, wrong.path) == ("unknown_table", "table")


class _NoSpark:
    def newSession(self) -> None:
        return None
