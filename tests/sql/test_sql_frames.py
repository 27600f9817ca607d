from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.sql.frames import column, run_query
from tests.sql.helpers import refusal

TOLD = {
    "SELEC 1": ("sql_syntax", "Syntax error at or near 'SELEC' (line 1, column 1)", None),
    "SELECT a\nFROM input i a": ("sql_syntax", "(line 2, column 14)", None),
    "": ("sql_syntax", "unexpected empty statement", None),
    "SELECT 'abc": ("sql_syntax", "Syntax error", None),
    "SELECT a FROM input; SELECT 1": ("sql_syntax", "Syntax error", None),
    "SELECT a,\n arrr FROM input": (
        "unknown_column",
        "there is no column 'arrr' (line 2, column 2)",
        "did you mean 'arr'? columns: a, b, arr, m, s, ts",
    ),
    "SELECT x.a FROM input": ("unknown_column", "there is no column 'x.a'", "columns: a, b"),
    "SELECT s.zz FROM input": ("unknown_column", "'zz'", "columns: p, q"),
    "SELECT a, id FROM input, range(a)": (
        "sql_error",
        "'a' cannot be used here: VALUES and range() see no",
        None,
    ),
    "SELECT transform(arr, x -> x + y) FROM input": ("unknown_column", "'y'", "columns: a"),
    "SELECT x FROM input, LATERAL (SELECT e AS x FROM VALUES (1) t(k), LATERAL explode(arr) g(e))": (
        "unknown_column",
        "no column 'arr'",
        "not visible here",
    ),
    "SELECT uper(b) FROM input": ("unknown_function", "no function uper() (line 1, column 8)", "'upper'"),
    "SELECT relfect(b) FROM input": ("unknown_function", "no function relfect()", None),
    "SELECT qqqqq(b) FROM input": ("unknown_function", "no function qqqqq()", "only Spark's built-in"),
    "SELECT a FROM inptu": ("unknown_table", "no table 'inptu': only 'input' (line 1, column 15)", "'input'"),
    "SELECT a + m AS x FROM input": ("sql_type", "incompatible types", None),
    "SELECT a FROM input WHERE b + arr": ("sql_type", "(line 1", None),
    "SELECT a FROM input WHERE a": ("sql_type", "is not a boolean", None),
    "SELECT date_add(b) FROM input": ("sql_type", "`date_add` requires 2 parameters", None),
    "SELECT CAST(m AS INT) FROM input": ("sql_type", "cannot cast", None),
    "SELECT from_json(b, 'a NOSUCH') FROM input": ("sql_syntax", "", None),
    "SELECT a FROM input UNION ALL SELECT a, b FROM input": ("sql_type", "same number of columns", None),
    "SELECT a, A FROM input": ("duplicate_column", "more than one column 'a'", "AS"),
    "SELECT *, a + 1 AS b FROM input": ("duplicate_column", "more than one column 'b'", "AS"),
    "SELECT 1 AS x": ("sql_error", "does not read 'input'", "FROM input"),
    "VALUES (1)": ("sql_error", "does not read 'input'", "FROM input"),
    "WITH q AS (SELECT * FROM input) SELECT 1 AS x": ("sql_error", "does not read 'input'", "FROM input"),
    "SELECT a FROM (SELECT 1 AS a) t JOIN input ON true": ("sql_error", "ambiguous", None),
    f"SELECT {'(' * 1500}a{')' * 1500} FROM input": ("sql_error", "nested too deeply", "split"),
}


@pytest.mark.parametrize("query", TOLD, ids=lambda q: q[:40])
def test_mistakes_are_told(events: DataFrame, query: str) -> None:
    code, message, hint = TOLD[query]
    problem = refusal(run_query, events, query, field="query")
    assert (problem.code, problem.path) == (code, "query")
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_wide_events_do_not_fill_the_hint(spark: SparkSession) -> None:
    wide = spark.createDataFrame([], ", ".join(f"column_{i} INT" for i in range(200)))
    problem = refusal(column, wide, "nope", field="where")
    assert (problem.hint or "").endswith("column_29, …")


ALLOWED = [
    "SELECT /* comment */ a FROM INPUT -- comment",
    "SELECT * EXCEPT (m) FROM input",
    "SELECT i.* FROM input AS i",
    "TABLE input",
    "SELECT * FROM IDENTIFIER('input')",
    "WITH input AS (SELECT a FROM input WHERE a > 1) SELECT * FROM input",
    "WITH q AS (SELECT a FROM input), r AS (SELECT a FROM Q) SELECT * FROM r",
    "SELECT /*+ BROADCAST(t), REPARTITION(2) */ a FROM input JOIN VALUES (1) t(k) ON k = a",
    "SELECT a, id FROM input CROSS JOIN range(3)",
    "SELECT * FROM input UNPIVOT (val FOR nam IN (a))",
    "SELECT stack(2, a, a + 1) AS z FROM input",
    "SELECT a, u FROM input, LATERAL UNNEST(arr) AS t(u)",
    "SELECT a, j.* FROM input, LATERAL JSON_TABLE(to_json(arr), '$[*]' COLUMNS (z INT PATH '$')) j",
    "SELECT raise_error('x') AS x, assert_true(true) AS y, input_file_name() AS z FROM input WHERE a > 9",
    "SELECT from_json(b, 'k INT') AS x, from_json(b, schema_of_json('{\"a\":1}')) AS y FROM input",
    "SELECT from_xml(b, 'k INT', map('mode', 'PERMISSIVE')) AS x, from_csv(b, '`k` INT') AS y FROM input",
    "SELECT from_json(b, 'STRUCT<k: INT>', map('mode', 'PERMISSIVE')) AS x FROM input",
    "SELECT aggregate(arr, 0, (acc, x) -> acc + x) AS x, filter(arr, x -> x > 1) AS y FROM input",
    "SELECT transform(arr, (x, i) -> x + i) AS x, map_filter(m, (k, v) -> v > 0) AS y FROM input",
    "SELECT window(ts, '5 minutes').start AS w, struct(*) AS x, (a, b) AS y FROM input",
    "SELECT CASE WHEN a > 1 THEN 'x' END AS c, a BETWEEN 1 AND 2 AS d, b ILIKE ANY ('x') AS e FROM input",
    "SELECT EXTRACT(YEAR FROM ts) AS i, trim(BOTH 'x' FROM b) AS j, a DIV 2 AS l, ~a & 1 AS n FROM input",
    "SELECT TIMESTAMPADD(DAY, 1, ts) r, ts - INTERVAL '1' DAY t, overlay(b PLACING 'q' FROM 1) u FROM input",
    "SELECT a::string AS y, TRY_CAST(b AS INT) z, a >> 1 AS w, b COLLATE UNICODE_CI = 'X' AS bb FROM input",
    "SELECT m['k'] AS cc, arr[0] AS dd, s.q.r AS ee, current_date AS gg, a IN (1, 2) AS ll FROM input",
]


@pytest.mark.parametrize("query", ALLOWED)
def test_what_sql_can_do(events: DataFrame, query: str) -> None:
    run_query(events, query).collect()


def test_input_is_gone_after_the_query(spark: SparkSession, events: DataFrame) -> None:
    first = run_query(events, "SELECT a FROM input")
    refusal(run_query, events, "SELECT nope FROM input")
    assert not spark.catalog.tableExists("input")
    assert {r.a for r in first.collect()} == {1, 2}


def test_queries_in_threads_never_see_each_other(spark: SparkSession) -> None:
    def compiled(n: int) -> tuple[int, list[str]]:
        frame = spark.range(1).selectExpr(f"{n} AS c{n}")
        return n, run_query(frame, "SELECT * FROM input").columns

    with ThreadPoolExecutor(4) as pool:
        assert all(columns == [f"c{n}"] for n, columns in pool.map(compiled, range(24)))


def test_column_is_resolved_at_once(streamed: DataFrame) -> None:
    made = column(streamed, "s.q.r || b", field="set.x")
    assert streamed.select(made.alias("x")).schema.simpleString() == "struct<x:string>"
    problem = refusal(column, streamed, "aa + 1", field="set.x")
    assert (problem.code, problem.path) == ("unknown_column", "set.x")
    assert problem.hint == "did you mean 'a'? columns: a, b, arr, m, s, ts"
    assert refusal(column, streamed, "*", field="set.x").code == "sql_error"
    assert refusal(column, streamed, "a, b", field="set.x").code == "sql_syntax"
    assert refusal(column, streamed, "", field="set.x").code == "sql_syntax"
