"""Questions about streams in SQL, on a real Spark and real logs."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.runtime import sql_queries as query
from penstock.engine.runtime.sql_queries import Queries, TookTooLong
from penstock.errors import Invalid, Problem, Unavailable
from penstock.frames.logs import LOGS
from penstock.frames.streams.table import read_range
from penstock.specs.stream import StreamSpec
from penstock.streams.decode import decode
from penstock.streams.events import payload_schema
from penstock.streams.home import StreamPlace
from tests.flows import Streams
from tests.streams.kit import make_stream

SCHEMA = "id BIGINT, customer STRING, amount DECIMAL(10, 2), at TIMESTAMP, tags ARRAY<STRING>"
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def queries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Queries:
    """Three streams: `plain`, with five raw events, `orders.in`, with nine typed ones, and an empty one."""
    home = tmp_path_factory.mktemp("queries")
    places = {
        "plain": StreamPlace("plain", StreamSpec(), make_stream(home / "plain")),
        "orders.in": StreamPlace(
            "orders.in",
            StreamSpec.model_validate({"schema": SCHEMA}),
            make_stream(home / "orders", schema=SCHEMA),
        ),
        "none-yet": StreamPlace("none-yet", StreamSpec(), make_stream(home / "none")),
    }
    raw = decode(b'{"n": 1}\n{"n": 2}\nthree\n', "text/plain", None, key=b"k").batch
    LOGS.log(places["plain"].directory).append(raw)
    LOGS.log(places["plain"].directory).append(decode(b"\xff", "application/octet-stream", None).batch)
    LOGS.log(places["plain"].directory).append(raw.slice(0, 1))
    rows = [
        {"id": i, "customer": "abc"[i % 3], "amount": i + 0.5, "at": "2026-01-02T03:04:05.5Z", "tags": ["x"]}
        for i in range(9)
    ]
    body = "\n".join(map(json.dumps, rows)).encode()
    typed = decode(body, "application/x-ndjson", payload_schema(SCHEMA))
    assert not typed.misfits
    LOGS.log(places["orders.in"].directory).append(typed.batch)
    return Queries(spark, lambda: places)


def refused(queries: Queries, sql: str) -> Problem:
    with pytest.raises(Invalid) as caught:
        queries.run(sql, 10, PATIENCE_S)
    (problem,) = caught.value.problems
    assert problem.path == "sql"
    return problem


def test_rows_are_plain_json(queries: Queries) -> None:
    found = queries.run("SELECT * FROM `orders.in` ORDER BY id LIMIT 1", 10, PATIENCE_S)
    assert [column.name for column in found.columns] == [
        *("id", "customer", "amount", "at", "tags", "_offset", "_time", "_key", "_headers")
    ]
    assert [column.type for column in found.columns][:5] == [
        *("bigint", "string", "decimal(10,2)", "timestamp", "array<string>")
    ]
    assert found.rows[0][:6] == [0, "a", "0.50", "2026-01-02T03:04:05.5Z", ["x"], 0]
    assert json.loads(found.model_dump_json())["rows"] == found.rows
    assert not found.truncated

    raw = queries.run(
        "SELECT parse_json(value):n::INT AS n, key, _offset FROM plain WHERE value LIKE '{%' ORDER BY 3",
        9,
        99,
    )
    assert raw.rows == [[1, "k", 0], [2, "k", 1], [1, "k", 4]]
    odd = queries.run("SELECT INTERVAL 3 DAYS AS x, x'ff' AS b, double('NaN') AS n, 1 AS x", 10, PATIENCE_S)
    assert odd.rows == [["INTERVAL '3' DAY", "/w==", "NaN", 1]]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT customer, count(*), sum(amount) FROM `orders.in` GROUP BY ALL ORDER BY 1 DESC",
            [["c", 3, "16.50"], ["b", 3, "13.50"], ["a", 3, "10.50"]],
        ),
        ("SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM `ORDERS.in`)", [[9]]),
        (
            "WITH o AS (SELECT id FROM `orders.in`) SELECT p.value FROM plain p JOIN o ON p._offset = o.id "
            "WHERE id = 2",
            [["three"]],
        ),
        ("SELECT count(*) FROM plain WHERE _offset IN (SELECT id FROM `orders.in` WHERE id > 2)", [[2]]),
        ("SELECT DISTINCT customer FROM `orders.in` EXCEPT SELECT 'a' ORDER BY 1", [["b"], ["c"]]),
        ("SELECT count(*) FROM `none-yet`", [[0]]),
        ("FROM plain |> AGGREGATE count(*) AS n", [[5]]),
    ],
)
def test_what_has_an_end_may_be_sorted_joined_and_summed(
    queries: Queries, sql: str, rows: list[object]
) -> None:
    assert queries.run(sql, 10, PATIENCE_S).rows == rows


def test_rows_are_limited(queries: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
    found = queries.run("SELECT id FROM `orders.in` ORDER BY id", 4, PATIENCE_S)
    assert (found.rows, found.truncated) == ([[0], [1], [2], [3]], True)
    assert not queries.run("SELECT id FROM `orders.in`", 9, PATIENCE_S).truncated
    monkeypatch.setattr(query, "MOST_BYTES", 5000)
    large = queries.run("SELECT repeat('x', 1000) FROM `orders.in`", 9, PATIENCE_S)
    assert large.truncated
    assert 1 <= len(large.rows) < 6


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("SELECT * FROM order_in", "unknown_table", "order_in"),
        ("SELECT * FROM orders.in", "sql_forbidden", "`orders.in`"),
        ("SELECT * FROM json.`/etc/passwd`", "sql_forbidden", "not allowed"),
        ("SELECT * FROM input", "unknown_table", "input"),
        ("DROP TABLE plain", "sql_forbidden", "DROP"),
        ("CREATE TABLE x AS SELECT * FROM plain", "sql_forbidden", ""),
        ("INSERT INTO plain SELECT 1", "sql_forbidden", ""),
        ("SET spark.x = 1", "sql_forbidden", ""),
        ("SELECT reflect('java.lang.System', 'exit')", "sql_forbidden", "reflect"),
        ("SELECT current_user()", "sql_forbidden", "account"),
        ("SELECT custmer FROM `orders.in`", "unknown_column", "customer"),
        ("SELECT customer, count(*) FROM `orders.in`", "sql_error", "GROUP BY"),
        ("SELECT raise_error('on purpose') FROM plain", "sql_error", "on purpose"),
        ("SELECT", "sql_syntax", ""),
    ],
)
def test_what_is_refused(queries: Queries, sql: str, code: str, said: str) -> None:
    problem = refused(queries, sql)
    assert problem.code == code
    assert said in f"{problem.message} {problem.hint}"
    assert len(problem.message) < 300


def test_a_query_ends_when_its_time_is_over(queries: Queries) -> None:
    began = time.monotonic()
    with pytest.raises(TookTooLong) as caught:
        queries.run("SELECT count(*) FROM range(1e9) a, range(1e9) b WHERE a.id * b.id % 7 = 3", 1, 1.0)
    assert caught.value.problems[0].code == "query_timeout"
    assert time.monotonic() - began < 30
    assert queries.run("SELECT count(*) FROM plain", 1, PATIENCE_S).rows == [[5]]


def test_only_a_few_run_at_once(queries: Queries) -> None:
    def long() -> None:
        with pytest.raises(TookTooLong):
            queries.run("SELECT count(*) FROM range(1e9) a, range(1e9) b WHERE a.id * b.id % 7 = 3", 1, 3.0)

    threads = [threading.Thread(target=long) for _ in range(query.AT_ONCE)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    with pytest.raises(Unavailable):
        queries.run("SELECT 1", 1, PATIENCE_S)
    for thread in threads:
        thread.join()
    assert queries.run("SELECT 1", 1, PATIENCE_S).rows == [[1]]


def test_a_table_is_read_in_parts_without_gaps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.frames.streams.table.PARTITION", 4)
    streams = Streams(tmp_path)
    log = streams.make("in")
    for _ in range(3):
        log.append(pa.record_batch([pa.array([b"a", b"b", b"c"])], ["value"]))
    read = read_range(spark, streams.place("in"), 1, 8)
    assert read.rdd.getNumPartitions() == 2
    rows = [(row["_offset"], row["value"]) for row in read.collect()]
    assert rows == list(zip(range(1, 8), "bcabcab", strict=True))
