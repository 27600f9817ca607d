"""Row by row plans that carry what is hidden, and mark the events they fail on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import Invalid
from penstock.sql.carry import FAILED, carry
from penstock.sql.frames import run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [(1, "5", [1, 2]), (2, "x", [3]), (3, "0", []), (4, "7", [4, 5])]


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return hidden(spark.createDataFrame(ROWS, "id INT, s STRING, a ARRAY<INT>"))


def hidden(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return df.withColumn("$event", f.struct(f.col("id").alias("offset")))


def result(df: DataFrame, query: str) -> tuple[list[tuple[Any, ...]], dict[int, Any]]:
    """What goes on, each row with the offset it came from; what failed, by offset."""
    frame = carry(df, "$event", lambda shown: run_query(shown, query))
    good, bad = [], {}
    for row in frame.collect():
        values = row.asDict(recursive=True)
        failed, event = values.pop(FAILED, None), values.pop("$event")
        offset = event["offset"] if event else None
        if failed is not None:
            bad[offset] = json.loads(failed)
        else:
            good.append((offset, *values.values()))
    return good, bad


CASES = {
    "a projection": (
        "SELECT id, CAST(s AS INT) AS n FROM input",
        [(1, 1, 5), (3, 3, 0), (4, 4, 7)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "a condition": (
        "SELECT id FROM input WHERE 10 / CAST(s AS INT) > 1.5",
        [(1, 1)],
        {2: {"id": 2, "s": "x", "a": [3]}, 3: {"id": 3, "s": "0", "a": []}},
    ),
    "a column under the name of another": (
        "SELECT CAST(s AS INT) AS s, s AS o FROM input WHERE id <> 3",
        [(1, 5, "5"), (4, 7, "7")],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "nested": (
        "SELECT n + 1 AS m FROM (SELECT CAST(s AS INT) AS n FROM input WHERE id > 1) WHERE n > 0",
        [(4, 8)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "a common table expression": (
        "WITH t AS (SELECT id, s FROM input) SELECT id, CAST(s AS INT) AS n FROM t",
        [(1, 1, 5), (3, 3, 0), (4, 4, 7)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "pipes": (
        "FROM input |> WHERE id > 1 |> EXTEND CAST(s AS INT) + 1 AS t |> SELECT t",
        [(3, 1), (4, 8)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "an array made into events": (
        "SELECT id, explode(a) AS v FROM input",
        [(1, 1, 1), (1, 1, 2), (2, 2, 3), (4, 4, 4), (4, 4, 5)],
        {},
    ),
    "above an array": (
        "SELECT v + CAST(s AS INT) AS w FROM (SELECT s, explode(a) AS v FROM input)",
        [(1, 6), (1, 7), (4, 11), (4, 12)],
        {2: {"id": 2, "s": "x", "v": 3}},
    ),
    "both sides of a union": (
        "SELECT id FROM input WHERE id = 1 UNION ALL SELECT id + 10 FROM input WHERE id = 4",
        [(1, 1), (4, 14)],
        {},
    ),
    "a union with literals": (
        "SELECT id FROM input WHERE id = 1 UNION ALL SELECT 99",
        [(1, 1), (None, 99)],
        {},
    ),
    "a join with literals": (
        "SELECT i.id, v.n FROM input i JOIN (VALUES (1, 'a'), (4, 'd')) AS v(id, n) ON i.id = v.id",
        [(1, 1, "a"), (4, 4, "d")],
        {},
    ),
    "columns made into rows": (
        "SELECT n, v FROM (SELECT id, -id AS m FROM input WHERE id = 1) UNPIVOT (v FOR n IN (id, m))",
        [(1, "id", 1), (1, "m", -1)],
        {},
    ),
    "below an array": (
        "SELECT n, explode(a) AS v FROM (SELECT CAST(s AS INT) AS n, a FROM input)",
        [(1, 5, 1), (1, 5, 2), (4, 7, 4), (4, 7, 5)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "an array that cannot be computed": (
        "SELECT id, v FROM input LATERAL VIEW explode(array(CAST(s AS INT), id)) t AS v WHERE id > 1",
        [(3, 3, 0), (3, 3, 3), (4, 4, 7), (4, 4, 4)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "an array that may be empty and cannot be computed": (
        "SELECT id, explode_outer(slice(a, CAST(s AS INT), 1)) AS v FROM input WHERE id <> 3",
        [(1, 1, None), (4, 4, None)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "a lateral join with an array that cannot be computed": (
        "SELECT id, p, v FROM input, LATERAL posexplode(array(CAST(s AS INT))) AS t(p, v)",
        [(1, 1, 0, 5), (3, 3, 0, 0), (4, 4, 0, 7)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "a lateral join with a computed column": (
        "SELECT id, n FROM input, LATERAL (SELECT CAST(s AS INT) + 1 AS n)",
        [(1, 1, 6), (3, 3, 1), (4, 4, 8)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "below a union": (
        "SELECT CAST(s AS INT) AS n FROM input WHERE id < 3"
        " UNION ALL SELECT 10 DIV s FROM input WHERE id = 3",
        [(1, 5)],
        {2: {"id": 2, "s": "x", "a": [3]}, 3: {"id": 3, "s": "0", "a": []}},
    ),
    "below a union with literals, and above it": (
        "SELECT 100 DIV n AS m FROM (SELECT CAST(s AS INT) AS n FROM input UNION ALL SELECT 50)",
        [(1, 20), (4, 14), (None, 2)],
        {2: {"id": 2, "s": "x", "a": [3]}, 3: {"n": 0}},
    ),
    "below a join": (
        "SELECT t.n, v.c FROM (SELECT CAST(s AS INT) AS n FROM input) t"
        " JOIN (VALUES (5, 'a'), (5, 'b'), (7, 'd')) AS v(n, c) ON t.n = v.n",
        [(1, 5, "a"), (1, 5, "b"), (4, 7, "d")],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "the condition of a join": (
        "SELECT i.id, v.c FROM input i JOIN (VALUES (5, 'a'), (7, 'd')) AS v(n, c)"
        " ON CAST(i.s AS INT) = v.n AND i.id < 10",
        [(1, 1, "a"), (4, 4, "d")],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "a join that converts a column by itself": (
        "SELECT i.id, v.c FROM (VALUES (5, 'a')) AS v(n, c) JOIN input i ON i.s = v.n",
        [(1, 1, "a")],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "an outer join": (
        "SELECT i.id, v.c FROM input i LEFT JOIN (VALUES (5, 'a')) AS v(n, c)"
        " ON 35 DIV CAST(i.s AS INT) = v.n",
        [(1, 1, None), (4, 4, "a")],
        {2: {"id": 2, "s": "x", "a": [3]}, 3: {"id": 3, "s": "0", "a": []}},
    ),
    "an anti join": (
        "SELECT i.id FROM input i LEFT ANTI JOIN (VALUES (5)) AS v(n) ON CAST(i.s AS INT) = v.n",
        [(3, 3), (4, 4)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "all pairs below": (
        "SELECT n, m FROM (SELECT CAST(s AS INT) AS n FROM input WHERE id < 3)"
        " CROSS JOIN (VALUES (1), (2)) AS v(m)",
        [(1, 5, 1), (1, 5, 2)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "columns made into rows that cannot be computed": (
        "SELECT n, v FROM (SELECT id, CAST(s AS INT) AS m FROM input WHERE id < 3)"
        " UNPIVOT (v FOR n IN (id, m))",
        [(1, "id", 1), (1, "m", 5)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "another number of partitions": (
        "SELECT /*+ REPARTITION(2, id) */ id, CAST(s AS INT) AS n FROM input",
        [(1, 1, 5), (3, 3, 0), (4, 4, 7)],
        {2: {"id": 2, "s": "x", "a": [3]}},
    ),
    "nothing that can fail": ("SELECT id AS i FROM input", [(1, 1), (2, 2), (3, 3), (4, 4)], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_event_keeps_what_is_hidden_and_what_fails_is_marked(events: DataFrame, case: str) -> None:
    query, good, bad = CASES[case]
    found, failed = result(events, query)
    assert sorted(found, key=str) == sorted(good, key=str)
    assert failed == bad


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i.id FROM input i JOIN (VALUES (0)) AS v(n) ON i.id DIV v.n = 1",
        "SELECT i.id FROM input i JOIN (VALUES (1)) AS v(n)"
        " ON CASE WHEN v.n > 0 THEN CAST(i.s AS INT) = 1 END",
        "SELECT i.id FROM input i LEFT SEMI JOIN (VALUES (5)) AS v(n) ON CAST(i.s AS INT) = v.n",
        "SELECT stack(2, CAST(s AS INT), id) FROM input",
        "SELECT id, n FROM input, LATERAL (SELECT v.n FROM (VALUES (5)) AS v(n) WHERE v.n = CAST(s AS INT))",
    ],
)
def test_what_cannot_be_tried_is_refused_with_a_way_around(events: DataFrame, query: str) -> None:
    with pytest.raises(Invalid) as caught:
        result(events, query)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("sql_untried", "query")
    assert "sql step" in (problem.hint or "")


def test_a_query_does_not_see_what_is_hidden(events: DataFrame) -> None:
    frame = carry(events, "$event", lambda shown: run_query(shown, "SELECT * FROM input"))
    assert frame.columns == ["id", "s", "a", "$event"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.sampled_from(["1", "12", "x", "", "0", "-3", "9999999999", " 7 "]), min_size=1, max_size=12
    )
)
def test_the_same_events_as_try_cast(spark: SparkSession, texts: list[str]) -> None:
    """What goes on is what `try_` functions make of the same events; all others are marked, none is lost."""
    df = hidden(spark.createDataFrame(list(enumerate(texts)), "id INT, s STRING"))
    good, bad = result(df, "SELECT id, 100 DIV CAST(s AS INT) AS n FROM input")
    tolerant, none = result(df, "SELECT id, 100 DIV nullif(try_cast(s AS INT), 0) AS n FROM input")
    assert not none
    assert sorted(good) == sorted(row for row in tolerant if row[2] is not None)
    assert sorted([*(row[0] for row in good), *bad]) == list(range(len(texts)))
