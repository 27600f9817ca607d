from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from penstock.sql.frames import column, run_query
from tests.sql.helpers import refusal, run

STATEFUL = {
    "SELECT count(*) AS n FROM input": "GROUP BY or an",
    "SELECT b, count(*) AS n FROM input GROUP BY b": "GROUP BY or an",
    "SELECT a FROM input GROUP BY b": "GROUP BY or an",
    "SELECT a, count(*) AS n FROM input": "GROUP BY or an",
    "SELECT b FROM input GROUP BY ALL": "GROUP BY or an",
    "SELECT 1 AS x FROM input HAVING count(*) > 1": "GROUP BY or an",
    "SELECT * FROM (SELECT a, b FROM input) PIVOT (max(a) FOR b IN ('x'))": "GROUP BY or an",
    "FROM input |> AGGREGATE max(a) GROUP BY b": "GROUP BY or an",
    "SELECT DISTINCT a FROM input": "DISTINCT",
    "SELECT a FROM input UNION SELECT a FROM input": "DISTINCT",
    "WITH q AS (SELECT a FROM input), r AS (SELECT DISTINCT a FROM q) SELECT * FROM r": "DISTINCT",
    "SELECT a FROM input EXCEPT SELECT 1": "EXCEPT",
    "SELECT a FROM input EXCEPT ALL SELECT 1": "EXCEPT",
    "SELECT a FROM input INTERSECT SELECT 1": "INTERSECT",
    "SELECT a FROM input ORDER BY a": "ORDER BY",
    "SELECT a FROM input SORT BY a": "SORT BY",
    "SELECT a FROM input LIMIT 1": "LIMIT",
    "SELECT a FROM input OFFSET 1": "OFFSET",
    "FROM input |> LIMIT 1": "LIMIT",
    "SELECT a FROM input TABLESAMPLE (5 ROWS)": "LIMIT",
    "SELECT a FROM input TABLESAMPLE (50 PERCENT)": "TABLESAMPLE",
    "SELECT row_number() OVER (ORDER BY a) AS n FROM input": "a window function",
    "SELECT a FROM input QUALIFY row_number() OVER (ORDER BY a) = 1": "a window function",
    "SELECT sum(a) OVER w AS n FROM input WINDOW w AS (PARTITION BY b)": "a window function",
    "SELECT i.a FROM input i JOIN input j ON i.a = j.a": "a join with itself",
    "SELECT i.a FROM input i, input j": "a join with itself",
    "WITH q AS (SELECT * FROM input) SELECT q.a FROM q JOIN input ON true": "a join with itself",
    "SELECT i.a FROM VALUES (1) t(k) LEFT JOIN input i ON k = a": "this kind of join",
    "SELECT i.a FROM input i RIGHT JOIN VALUES (1) t(k) ON k = a": "this kind of join",
    "SELECT i.a FROM input i FULL JOIN VALUES (1) t(k) ON k = a": "this kind of join",
    "SELECT k FROM VALUES (1) t(k) LEFT SEMI JOIN input ON k = a": "this kind of join",
    "SELECT a FROM input WHERE a IN (SELECT a FROM input)": "a subquery",
    "SELECT k FROM VALUES (1) t(k) WHERE EXISTS (SELECT 1 FROM input WHERE a = k)": "a subquery",
    "SELECT k, x FROM VALUES (1) t(k), LATERAL (SELECT a AS x FROM input)": "a subquery",
    # These would fail only when the query runs: Spark makes an aggregate of them.
    "SELECT a, x FROM input, LATERAL (SELECT v + a AS x FROM VALUES (1) t(v))": "correlated",
    "SELECT a, x FROM input, LATERAL (SELECT e * a AS x FROM explode(arr) t(e))": "correlated",
    "SELECT a, x FROM input, LATERAL (SELECT e AS x FROM explode(arr) t(e) WHERE e > 1)": "correlated",
    "SELECT a, x FROM input, LATERAL (SELECT sum(e) AS x FROM explode(arr) t(e))": "correlated",
    "SELECT a, x FROM input, LATERAL (SELECT a AS x UNION ALL SELECT a + 1)": "correlated",
    "SELECT a FROM input WHERE EXISTS (SELECT 1 FROM explode(arr) t(e) WHERE e > 1)": "correlated",
    "SELECT a FROM input WHERE a IN (SELECT e FROM explode(arr) t(e))": "correlated",
    "SELECT a, (SELECT max(v) FROM VALUES (1, 2) t(k, v) WHERE k < a) AS x FROM input": "correlated",
}


@pytest.mark.parametrize("query", STATEFUL)
def test_query_that_needs_state_is_refused(events: DataFrame, query: str) -> None:
    problem = refusal(run_query, events, query)
    assert (problem.code, problem.path) == ("stateful_sql", "query")
    assert STATEFUL[query] in problem.message
    assert problem.hint


def test_streams_are_refused_the_same(streamed: DataFrame) -> None:
    for query in (
        "SELECT count(*) FROM input",
        "SELECT DISTINCT a FROM input",
        "SELECT a FROM input LIMIT 1",
    ):
        assert refusal(run_query, streamed, query).code == "stateful_sql"


@pytest.mark.parametrize(
    "text", ["count(*)", "max(a) + 1", "row_number() OVER (ORDER BY a)", "lag(a) OVER w"]
)
def test_expression_over_many_events_is_refused(events: DataFrame, text: str) -> None:
    assert refusal(column, events, text, field="set.x").code == "stateful_sql"


ROW_BY_ROW = {
    "SELECT a FROM input UNION ALL SELECT a + 10 FROM input": [(1,), (2,), (11,), (12,)],
    "SELECT a, x FROM input, LATERAL explode(arr) t(x)": [(1, 1), (1, 2), (2, 3)],
    "SELECT a, x FROM input LATERAL VIEW OUTER explode(arr) t AS x": [(1, 1), (1, 2), (2, 3)],
    "SELECT a, x FROM input, LATERAL (SELECT a + 1 AS x)": [(1, 2), (2, 3)],
    "SELECT a, x FROM input, LATERAL (SELECT e AS x FROM explode(arr) t(e))": [(1, 1), (1, 2), (2, 3)],
    "SELECT a, n FROM input LEFT JOIN VALUES (1, 'one') t(k, n) ON k = a": [(1, "one"), (2, None)],
    "SELECT a FROM VALUES (1) t(k) RIGHT JOIN input ON k = a": [(1,), (2,)],
    "SELECT a FROM input WHERE a NOT IN (SELECT k FROM VALUES (1) t(k))": [(2,)],
    "SELECT a FROM input WHERE EXISTS (SELECT 1 FROM VALUES (1) t(k) WHERE k < a)": [(2,)],
    "SELECT a, (SELECT max(k) FROM VALUES (1), (5) t(k)) AS x FROM input": [(1, 5), (2, 5)],
    "SELECT a, (SELECT v FROM VALUES (1, 7) t(k, v) WHERE k = a) AS x FROM input": [(1, 7), (2, None)],
    "SELECT a, v FROM input JOIN (SELECT k, max(v) v FROM VALUES (1, 2) t(k, v) GROUP BY k) ON k = a": [
        (1, 2)
    ],
    "WITH q AS (SELECT a, rand() AS r FROM input) SELECT a FROM q UNION ALL SELECT a FROM q": [
        (1,), (1,), (2,), (2,),
    ],
    "FROM input |> WHERE a > 1 |> SET a = a * 10 |> EXTEND a + 1 AS c |> SELECT a, c": [(20, 21)],
    "SELECT v:x.y::int AS y FROM (SELECT a, parse_json('{\"x\": {\"y\": 5}}') AS v FROM input)": [(5,), (5,)],
}  # fmt: skip


@pytest.mark.parametrize("query", ROW_BY_ROW)
def test_row_by_row_query_runs_on_frames_and_streams(
    events: DataFrame, streamed: DataFrame, tmp_path: Path, query: str
) -> None:
    expected = ROW_BY_ROW[query]
    assert sorted(map(tuple, run_query(events, query).collect())) == expected
    assert sorted(map(tuple, run(run_query(streamed, query), tmp_path))) == expected
