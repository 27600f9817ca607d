"""Spark's private classes: each use of them, called once, so that an upgrade of Spark fails here by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.spark import driver, plans, queries
from penstock.spark.catalyst import Catalyst, has_watermark, id_of, optimised, resolved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PRIVATE = re.compile(
    r"\._(jvm|jsq|jsc|jdf|jc|jgd|jrdd|jsparkSession|gateway|sc|ensure_initialized)\b|\bpy4j\b"
    r"|Getting offsets from|Waiting for (data|next)"
)


def test_private_parts_of_spark_are_used_in_one_place() -> None:
    root = Path(penstock.__file__).parent
    found: dict[str, int] = {}
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        lines = sum(bool(PRIVATE.search(line)) for line in path.read_text().splitlines())
        if lines and not name.startswith("spark/"):
            found[name] = lines
    assert found == {}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "5", [1, 2]), (2, "x", [])], "id INT, s STRING, a ARRAY<INT>")


@pytest.fixture(scope="module")
def catalyst(spark: SparkSession) -> Catalyst:
    return Catalyst(spark)


Make = Callable[[Catalyst, list[Any]], Any]
EXPRESSIONS: dict[str, tuple[Make, list[Any]]] = {
    "alias": (lambda c, a: c.alias(a[0], "x"), [1, 2]),
    "struct and field": (lambda c, a: c.field(c.struct([("x", a[0]), ("y", a[1])]), 1), ["5", "x"]),
    "tried": (lambda c, a: c.tried(c.parser().parseExpression("CAST(s AS INT)")), [5, None]),
    "to_json": (lambda c, a: c.to_json(c.struct([("x", a[0])]), {}), ['{"x":1}', '{"x":2}']),
    "either": (lambda c, a: c.either(c.literal(False), c.literal(True)), [True, True]),
    "both": (lambda c, a: c.both(c.literal(False), c.literal(True)), [False, False]),
    "negated": (lambda c, a: c.negated(c.is_null(a[0])), [True, True]),
    "equal": (lambda c, a: c.equal(a[0], c.literal(1)), [True, False]),
    "when": (lambda c, a: c.when(c.equal(a[0], c.literal(1)), a[1], c.no_text()), ["5", None]),
    "has_elements": (lambda c, a: c.has_elements(a[2]), [True, False]),
    "null": (lambda c, a: c.null(a[0].dataType()), [None, None]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression(events: DataFrame, catalyst: Catalyst, name: str) -> None:
    make, wanted = EXPRESSIONS[name]
    attributes = list(plans.elements(resolved(events).output()))
    made = catalyst.column(make(catalyst, attributes)).alias("made")
    assert [row.made for row in events.select(made).collect()] == wanted


def test_a_try_catches_what_is_computed_twice(events: DataFrame, catalyst: Catalyst) -> None:
    casts = [catalyst.parser().parseExpression("CAST(s AS INT)") for _ in range(3)]
    struct = catalyst.tried(catalyst.struct((str(i), cast) for i, cast in enumerate(casts)))
    assert [row[0] is None for row in events.select(catalyst.column(struct)).collect()] == [False, True]


def test_nodes(events: DataFrame, catalyst: Catalyst) -> None:
    plan = resolved(events)
    id, s, a = plans.elements(plan.output())
    assert id_of(id) != id_of(s)
    assert (plans.name(id), plans.name(plan).rpartition(".")[2]) == ("AttributeReference", "LogicalRDD")
    one = catalyst.filter(catalyst.equal(id, catalyst.literal(1)), catalyst.project([id, s, a], plan))
    assert catalyst.frame(catalyst.union([one, one])).count() == 2
    number = catalyst.attribute(catalyst.alias(catalyst.literal(0), "n"))
    expanded = catalyst.expand([[id, catalyst.literal(i)] for i in range(3)], [id, number], plan)
    assert catalyst.frame(expanded).count() == 6
    generate = plans.elements(resolved(events.selectExpr("id", "explode(a) AS v")).children())
    node = next(generate)
    for outer, rows in ((True, 3), (False, 2)):
        made = catalyst.generate(node.generator(), node.generatorOutput(), plan, outer=outer)
        assert catalyst.frame(made).count() == rows
    joined = resolved(events.crossJoin(events.sparkSession.range(3, 5)))
    left, right = plans.elements(joined.children())
    for kind, rows in (("LeftOuter", 4), ("RightOuter", 4), ("Inner", 4), ("LeftAnti", 0)):
        assert catalyst.frame(catalyst.join(left, right, kind, None, joined)).count() == rows


def test_what_is_asked_of_plans(events: DataFrame, catalyst: Catalyst, spark: SparkSession) -> None:
    renamed = events.selectExpr("CAST(id AS BIGINT) AS wide", "CAST(s AS INT) AS narrow")
    wide, narrow = (named.child() for named in plans.elements(resolved(renamed).projectList()))
    assert (catalyst.is_wider(wide), catalyst.is_wider(narrow)) == (True, False)
    swapped = catalyst.replaced(narrow, lambda e: catalyst.literal("7") if plans.name(e) != "Cast" else None)
    assert [row[0] for row in events.select(catalyst.column(swapped)).collect()] == [7, 7]
    assert catalyst.option(None).isEmpty()
    assert "LogicalRDD" in plans.class_name(optimised(events.filter("1 = 1")))
    assert not has_watermark(events)
    ticks = spark.readStream.format("rate").load()
    assert has_watermark(ticks.withWatermark("timestamp", "1 second"))
    cte = catalyst.frame(catalyst.parser().parsePlan("WITH t AS (SELECT 1 AS x) SELECT * FROM t"))
    assert catalyst.frame(catalyst.inlined(resolved(cte))).collect()[0].x == 1


def test_the_driver(spark: SparkSession) -> None:
    assert driver.is_alive(spark)
    assert driver.jvm_of(spark).java.lang.Math.abs(-1) == 1
    assert driver.hadoop_configuration(spark).get("fs.defaultFS")
    driver.write_no_checksums(spark)
    driver.silence(spark, ["org.example.none"])
    driver.compile_pattern(spark, "a+")
    with pytest.raises(driver.java_errors()):
        driver.compile_pattern(spark, "(")


@pytest.mark.slow
def test_a_query_tells_when_it_waits_and_why_it_has_failed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("value STRING").text(str(tmp_path / "in"))
    query = frame.selectExpr("raise_error(value)").writeStream.format("noop").start()
    try:
        _wait(lambda: queries.has_nothing_to_do(query))
        assert queries.failure_in(query) is None
        _wait(lambda: queries.is_between_batches(query))
        (tmp_path / "in" / "one.txt").write_text("bad")
        _wait(lambda: not query.isActive)
        assert "bad" in str(queries.failure_in(query).getMessage())
    finally:
        query.stop()


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_method_of_a_java_object_is_called_for_each_row(spark: SparkSession) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, StringType

    catalyst = Catalyst(spark)
    words = spark.createDataFrame([("a b",), (None,)], "s STRING")
    target = spark._jvm.org.apache.spark.unsafe.types.UTF8String.fromString("x")
    of = catalyst.type_of(StringType())
    made = catalyst.invoked(target, "toUpperCase", of)
    shown = words.select(catalyst.column(made).alias("up"), f.col("s"))
    assert [row["up"] for row in shown.collect()] == ["X", "X"]
    assert catalyst.type_of(ArrayType(StringType())).simpleString() == "array<string>"


def test_the_text_of_an_error_has_its_causes(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        spark.sql("SELECT raise_error('told')").collect()
    assert "told" in driver.error_text(raised.value)
    java = spark._jvm.java.lang.RuntimeException("outer", spark._jvm.java.io.IOException("inner"))
    assert driver.error_text(java).splitlines() == [
        "java.lang.RuntimeException: outer",
        "java.io.IOException: inner",
    ]
    assert driver.error_text(ValueError("plain")) == "ValueError: plain"
