from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from penstock.connectors.base import Delivered, DeliveryId, Events, SinkWriter
from penstock.connectors.sql.sink import SqlSink
from penstock.connectors.sql.types import JSON
from penstock.engine.plan.connections import probe_connector
from penstock.errors import Invalid, Suspended, Unavailable
from tests.databases import NAMES, Base, database
from tests.flows import NO_STREAMS

pytestmark = pytest.mark.slow


class Table(Events):
    def __init__(self, table: pa.Table) -> None:
        self.made = table

    def frame(self) -> DataFrame:
        raise NotImplementedError

    def table(self) -> pa.Table:
        return self.made


@pytest.fixture(params=NAMES)
def base(request: pytest.FixtureRequest) -> Iterator[Base]:
    with database(request.param, request) as made:
        yield made


@pytest.fixture
def writer(base: Base) -> Iterator[Callable[..., SinkWriter]]:
    opened: list[SinkWriter] = []

    def open_(**fields: Any) -> SinkWriter:
        given = base.spec(**{"table": "t", **fields})
        opened.append(SqlSink.model_validate(given).open(NO_STREAMS))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def batch(number: int = 0, lineage: str = "l") -> DeliveryId:
    return DeliveryId("pipeline", "sink", lineage, number)


def put(writer: SinkWriter, number: int, *rows: dict[str, Any], schema: pa.Schema | None = None) -> Delivered:
    return writer.write(Table(pa.Table.from_pylist(list(rows), schema)), batch(number))


ALL = pa.schema(
    [
        ("id", pa.int64()), ("tiny", pa.int8()), ("small", pa.int16()), ("whole", pa.int32()),
        ("single", pa.float32()), ("number", pa.float64()), ("exact", pa.decimal128(38, 9)),
        ("yes", pa.bool_()), ("words", pa.string()), ("raw", pa.binary()), ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
        ("nested", pa.struct([(JSON, pa.string())])),
    ]
)  # fmt: skip

FULL = {
    "id": 2**63 - 1, "tiny": -128, "small": 32767, "whole": -(2**31), "single": 0.15625, "number": 1.7e308,
    "exact": Decimal("-12345678901234567890123456789.123456789"), "yes": True,
    "words": "it's \\ \"quoted\"\n\ttab, ü €😀", "raw": bytes(range(256)), "day": dt.date(1969, 12, 31),
    "moment": dt.datetime(2026, 1, 31, 23, 59, 59, 999999, dt.UTC),
    "local": dt.datetime(1999, 12, 31, 23, 59, 59, 1), "nested": {JSON: '{"a": [1, null, {"b": "\'"}]}'},
}  # fmt: skip
EMPTY = dict.fromkeys(FULL) | {"id": 1, "nested": {JSON: None}}
ZERO = FULL | {
    "id": 0, "words": "", "raw": b"", "number": 5e-324, "exact": Decimal("0.000000001"), "yes": False,
    "moment": dt.datetime(1, 1, 1, tzinfo=dt.UTC), "single": -0.0,
}  # fmt: skip


def test_every_type_comes_back_as_it_was(base: Base, writer: Callable[..., SinkWriter]) -> None:
    done = put(writer(create="if_missing"), 0, FULL, EMPTY, ZERO, schema=ALL)
    assert (done.events, list(done.rejected)) == (3, [])
    names = ", ".join(FULL)
    found = {row[0]: dict(zip(FULL, row, strict=True)) for row in base.rows(f"SELECT {names} FROM t")}
    for given in (FULL, EMPTY, ZERO):
        assert {n: seen(v, n, base) for n, v in found[given["id"]].items()} == given


def seen(value: Any, name: str, base: Base) -> Any:
    """A value as it was given, from what another client reads."""
    if name == "nested":
        return {JSON: value if isinstance(value, str) or value is None else json.dumps(value)}
    if value is None:
        return None
    if name == "yes":
        return bool(value)
    if name == "moment" and base.kind == "mariadb":
        return value.replace(tzinfo=dt.UTC)
    if base.kind == "sqlite" and name in ("moment", "local"):
        assert name == "local" or value.endswith("Z")
        return dt.datetime.fromisoformat(value)
    if base.kind == "sqlite" and name == "day":
        return dt.date.fromisoformat(value)
    return Decimal(value) if name == "exact" else value


def test_the_types_of_a_created_table(base: Base, writer: Callable[..., SinkWriter]) -> None:
    put(writer(create="if_missing"), 0, FULL, schema=ALL)
    if base.kind == "sqlite":
        found = [row[2] for row in base.rows("PRAGMA table_info(t)")]
        assert found == [
            "INTEGER", "INTEGER", "INTEGER", "INTEGER", "REAL", "REAL", "TEXT", "BOOLEAN", "TEXT", "BLOB",
            "DATE", "TIMESTAMP", "TIMESTAMP", "JSON",
        ]  # fmt: skip
        return
    query = (
        "SELECT {} FROM information_schema.columns WHERE table_name = 't' AND table_schema = {} "
        "ORDER BY ordinal_position"
    )
    if base.kind == "postgres":
        assert [row[0] for row in base.rows(query.format("data_type", "'public'"))] == [
            "bigint", "smallint", "smallint", "integer", "real", "double precision", "numeric", "boolean",
            "text", "bytea", "date", "timestamp with time zone", "timestamp without time zone", "jsonb",
        ]  # fmt: skip
    else:
        assert [row[0] for row in base.rows(query.format("column_type", "DATABASE()"))] == [
            "bigint(20)", "tinyint(4)", "smallint(6)", "int(11)", "float", "double", "decimal(38,9)",
            "tinyint(1)", "longtext", "longblob", "date", "datetime(6)", "datetime(6)", "longtext",
        ]  # fmt: skip


SMALL = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(5) {check} NOT NULL, n SMALLINT, CHECK (n < 100))"
)


def test_bad_rows_are_letters_and_the_others_are_written(
    base: Base, writer: Callable[..., SinkWriter]
) -> None:
    check = "CHECK (length(name) < 6)" if base.kind == "sqlite" else ""
    base.run(SMALL.format(check=check))
    rows: list[dict[str, Any]] = [{"id": i, "name": f"n{i % 100}", "n": i % 90} for i in range(1000)]
    rows[7]["name"] = None
    rows[300]["name"] = "too long"
    rows[301]["n"] = 100
    rows[700]["id"] = 5
    rows[999]["n"] = 100_000
    target = writer()
    done = put(target, 3, *rows)
    letters = {json.loads(each.row)["id"]: each for each in done.rejected}
    wide = "check_failed" if base.kind == "sqlite" else "out_of_range"
    long = "check_failed" if base.kind == "sqlite" else "too_long"
    assert {i: letter.code for i, letter in letters.items()} == {
        7: "null_value", 300: long, 301: "check_failed", 5: "duplicate_key", 999: wide,
    }  # fmt: skip
    assert all(letter.message for letter in letters.values())
    good = [row for i, row in enumerate(rows) if i not in (7, 300, 301, 700, 999)]
    assert base.rows("SELECT id, name, n FROM t ORDER BY id") == [tuple(row.values()) for row in good]
    assert done.events == 995
    again = put(writer(), 3, *rows)
    assert (again.events, list(again.rejected)) == (995, list(done.rejected)), "letters survive a crash"
    assert base.rows("SELECT count(*) FROM t") == [(995,)]


def test_values_that_a_column_would_change_are_letters(base: Base, writer: Callable[..., SinkWriter]) -> None:
    if base.kind == "sqlite":
        pytest.skip("SQLite keeps what it is given")
    base.run("CREATE TABLE t (id BIGINT, price DECIMAL(10, 2), at TIMESTAMP(0) NULL, wide DOUBLE PRECISION)")
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("price", pa.decimal128(20, 4)),
            ("at", pa.timestamp("us", "UTC")),
            ("wide", pa.int64()),
        ]
    )
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    good = {"id": 1, "price": Decimal("1.2500"), "at": at, "wide": 2**53}
    rows = [
        good,
        good | {"id": 2, "price": Decimal("1.2501")},
        good | {"id": 3, "at": at.replace(microsecond=500_000)},
        good | {"id": 4, "wide": -(2**53) - 1},
        good | {"id": 5, "price": Decimal("12345678901.0000")},
    ]
    done = put(writer(), 0, *rows, schema=schema)
    assert {json.loads(r.row)["id"]: r.code for r in done.rejected} == {
        2: "would_change", 3: "would_change", 4: "would_change", 5: "out_of_range",
    }  # fmt: skip
    assert base.rows("SELECT id FROM t") == [(1,)]


def test_a_foreign_key(base: Base, writer: Callable[..., SinkWriter]) -> None:
    later = " DEFERRABLE INITIALLY DEFERRED" if base.kind == "postgres" else ""
    base.run(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY)",
        "INSERT INTO customers VALUES (1)",
        "CREATE TABLE t (id INTEGER, customer INTEGER, "
        f"FOREIGN KEY (customer) REFERENCES customers (id){later})",
    )
    done = put(writer(), 0, {"id": 1, "customer": 1}, {"id": 2, "customer": 2}, {"id": 3, "customer": None})
    assert [(json.loads(r.row)["id"], r.code) for r in done.rejected] == [(2, "foreign_key")]
    assert base.rows("SELECT id FROM t ORDER BY id") == [(1,), (3,)]


def test_upsert_writes_the_last_event_of_a_key(base: Base, writer: Callable[..., SinkWriter]) -> None:
    sink = writer(mode="upsert", key=["shop", "id"], create="if_missing")
    rows = [{"shop": "a", "id": i % 10, "n": i} for i in range(100)] + [{"shop": "A", "id": 1, "n": 0}]
    assert put(sink, 0, *rows).events == 101
    assert put(sink, 1, {"shop": "a", "id": 3, "n": None}, {"shop": "a ", "id": 3, "n": 1}).events == 2
    found = base.rows("SELECT shop, id, n FROM t ORDER BY shop, id")
    want = {("a", i): 90 + i for i in range(10)} | {("A", 1): 0, ("a", 3): None, ("a ", 3): 1}
    assert {(shop, number): n for shop, number, n in found} == want


def test_sync_deletes_and_inserts_again(base: Base, writer: Callable[..., SinkWriter]) -> None:
    base.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2), (9, 9)"
    )
    sink = writer(mode="sync", key=["id"], op={"column": "op", "delete": ["d"]})
    events = [
        ("u", 1, 10), ("d", 2, None), ("c", 3, 30), ("d", 3, None), ("d", 9, None), ("c", 9, 90),
        (None, 4, 40), ("d", 77, None),
    ]  # fmt: skip
    done = put(sink, 0, *({"op": op, "id": number, "n": n} for op, number, n in events))
    assert (done.events, list(done.rejected)) == (8, [])
    assert base.rows("SELECT id, n FROM t ORDER BY id") == [(1, 10), (4, 40), (9, 90)]
    changed = pa.schema([("op", pa.string()), ("id", pa.int64()), ("n", pa.decimal128(9, 2))])
    removed = [{"op": "d", "id": number, "n": Decimal("0.50")} for number in (1, 4)]
    assert list(put(sink, 1, *removed, schema=changed).rejected) == [], "only the key counts"
    assert base.rows("SELECT id, n FROM t") == [(9, 90)]


def test_the_event_before_a_bad_one_of_its_key_is_written(
    base: Base, writer: Callable[..., SinkWriter]
) -> None:
    base.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, CHECK (n < 100))", "INSERT INTO t VALUES (2, 2)"
    )
    sink = writer(mode="sync", key=["id"], op={"column": "op"})
    rows = [
        {"op": "u", "id": 1, "n": 10}, {"op": "u", "id": 1, "n": 20}, {"op": "u", "id": 1, "n": 100},
        {"op": "d", "id": 2, "n": 0}, {"op": "u", "id": 2, "n": 200}, {"op": "u", "id": 3, "n": 30},
        {"op": "u", "id": None, "n": 1},
    ]  # fmt: skip
    done = put(sink, 0, *rows)
    assert sorted((r.code, json.loads(r.row)["n"]) for r in done.rejected) == [
        ("check_failed", 100), ("check_failed", 200), ("null_key", 1),
    ]  # fmt: skip
    assert base.rows("SELECT id, n FROM t ORDER BY id") == [(1, 20), (3, 30)]


def test_another_unique_index_rejects_and_never_replaces_another_row(
    base: Base, writer: Callable[..., SinkWriter]
) -> None:
    base.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, mail VARCHAR(50) UNIQUE, n INTEGER)",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    )
    sink = writer(mode="upsert", key=["id"])
    rows = [{"id": 4, "mail": "a", "n": 4}, {"id": 5, "mail": "c", "n": 5}, {"id": 3, "mail": "d", "n": 33}]
    done = put(sink, 0, *rows)
    assert [(json.loads(r.row)["id"], r.code) for r in done.rejected] == [(4, "duplicate_key")]
    found = [(1, "a", 1), (2, "b", 2), (3, "d", 33), (5, "c", 5)]
    assert base.rows("SELECT id, mail, n FROM t ORDER BY id") == found


def test_a_batch_is_written_once_and_a_new_lineage_again(
    base: Base, writer: Callable[..., SinkWriter]
) -> None:
    sink = writer(create="if_missing")
    rows = [{"id": i} for i in range(10)]
    for target in (sink, sink, writer(create="if_missing")):
        assert put(target, 0, *rows).events == 10
    assert base.rows("SELECT count(*) FROM t") == [(10,)]
    other = pa.Table.from_pylist(rows)
    assert sink.write(Table(other), batch(0, "other")).events == 10
    assert base.rows("SELECT count(*) FROM t") == [(20,)]
    put(sink, 100_000, {"id": 1})
    found = base.rows("SELECT lineage, batch FROM penstock_deliveries ORDER BY batch, lineage")
    assert found == [("other", 0), ("l", 100_000)], "old ids are forgotten, those of another lineage later"


def test_a_worker_that_may_not_write_any_more_commits_nothing(
    base: Base, writer: Callable[..., SinkWriter]
) -> None:
    sink = writer(create="if_missing")
    put(sink, 0, {"id": 1})

    def fenced() -> None:
        raise Suspended("fenced")

    sink.permitted = fenced
    with pytest.raises(Suspended):
        put(sink, 1, {"id": 2})
    assert base.rows("SELECT id FROM t") == [(1,)]
    assert put(writer(), 1, {"id": 2}).events == 1


def test_evolve_adds_columns(base: Base, writer: Callable[..., SinkWriter]) -> None:
    put(writer(create="evolve"), 0, {"id": 1})
    put(writer(create="evolve"), 1, {"id": 2, "more": "x", "price": Decimal("1.50")})
    assert [row[:2] for row in base.rows("SELECT id, more FROM t ORDER BY id")] == [(1, None), (2, "x")]
    with pytest.raises(Invalid) as refused:
        put(writer(create="if_missing"), 2, {"id": 3, "mor": "x"})
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("unknown_column", "table")
    assert "'more'" in (problem.hint or "")


def test_names_need_no_care(base: Base, writer: Callable[..., SinkWriter]) -> None:
    sink = writer(create="if_missing", table='od"d`t', mode="upsert", key=["select"])
    row = {"select": 1, 'a "b` c': "x", "Order": 2}
    put(sink, 0, row)
    put(sink, 1, row | {"Order": 3})
    name = '`od"d``t`' if base.kind == "mariadb" else '"od""d`t"'
    assert [tuple(found) for found in base.rows(f"SELECT * FROM {name}")] == [(1, "x", 3)]


def test_columns_match_in_upper_and_lower_case(base: Base, writer: Callable[..., SinkWriter]) -> None:
    base.run("CREATE TABLE t (Id INTEGER PRIMARY KEY, name VARCHAR(9))")
    put(writer(mode="upsert", key=["ID"]), 0, {"ID": 1, "Name": "x"})
    assert base.rows("SELECT id, name FROM t") == [(1, "x")]


WRONG: dict[str, tuple[list[str], dict[str, Any], dict[str, Any], str, str]] = {
    "type": (["CREATE TABLE t (id INTEGER)"], {}, {"id": "x"}, "wrong_type", "table"),
    "needed": (
        ["CREATE TABLE t (id INTEGER, must INTEGER NOT NULL)"], {}, {"id": 1}, "missing_column", "table",
    ),
    "column": (["CREATE TABLE t (id INTEGER)"], {}, {"id": 1, "idd": 1}, "unknown_column", "table"),
    "key": (
        ["CREATE TABLE t (id INTEGER, n INTEGER)"], {"mode": "upsert", "key": ["id"]}, {"id": 1},
        "no_unique_key", "key",
    ),
    "table": (["CREATE TABLE tt (id INTEGER)"], {}, {"id": 1}, "unknown_table", "table"),
    "generated": (
        ["CREATE TABLE t (id INTEGER, g INTEGER GENERATED ALWAYS AS (id + 1) STORED)"], {}, {"id": 1, "g": 2},
        "generated_column", "table",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_before_anything_is_written(wrong: str, base: Base, writer: Callable[..., SinkWriter]) -> None:
    statements, fields, row, code, path = WRONG[wrong]
    base.run(*statements)
    with pytest.raises(Invalid) as refused:
        put(writer(**fields), 0, row)
    assert [(p.code, p.path) for p in refused.value.problems] == [(code, path)]
    assert all(p.hint for p in refused.value.problems)


def test_an_outage_is_over_when_it_is_over(base: Base, writer: Callable[..., SinkWriter]) -> None:
    sink = writer(create="if_missing")
    put(sink, 0, {"id": 1})
    base.stop()
    try:
        with pytest.raises(Unavailable):
            put(sink, 1, {"id": 2})
    finally:
        base.start()
    assert put(sink, 1, {"id": 2}).events == 1
    assert base.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_the_connection_test(base: Base) -> None:
    base.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
    probe = lambda **fields: probe_connector("sink", base.spec(**fields), NO_STREAMS, _NoSpark(), {})  # noqa: E731
    if base.kind == "sqlite":
        url = base.url + "-new"
        assert probe(url=url, table="t", create="if_missing").problems == []
        assert [p.code for p in probe(url=url, table="t").problems] == ["unknown_database"]
        assert not Path(url.removeprefix("sqlite:///")).exists(), "nothing is made"
    good = probe(table="orders", mode="upsert", key=["id"])
    assert (good.problems, good.offers) == ([], {"tables": ["orders"], "columns": ["id", "n"]})
    assert [p.code for p in probe(table="orders", mode="upsert", key=["n"]).problems] == ["no_unique_key"]
    (missing,) = probe(table="order").problems
    assert (missing.code, missing.path) == ("unknown_table", "table")
    assert "did you mean 'orders'" in (missing.hint or "")
    assert probe(table="order", create="if_missing").problems == []


class _NoSpark:
    def newSession(self) -> None:
        return None
