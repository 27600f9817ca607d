"""Spark's private classes: each use of them, called once, so that an upgrade of Spark fails here by name."""

from __future__ import annotations

import os
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
    _, narrow = (named.child() for named in plans.elements(resolved(renamed).projectList()))
    swapped = catalyst.replaced(narrow, lambda e: catalyst.literal("7") if plans.name(e) != "Cast" else None)
    assert [row[0] for row in events.select(catalyst.column(swapped)).collect()] == [7, 7]
    assert catalyst.option(None).isEmpty()
    assert "LogicalRDD" in plans.class_name(optimised(events.filter("1 = 1")))
    assert not has_watermark(events)
    ticks = spark.readStream.format("rate").load()
    assert has_watermark(ticks.withWatermark("timestamp", "1 second"))
    cte = catalyst.frame(catalyst.parser().parsePlan("WITH t AS (SELECT 1 AS x) SELECT * FROM t"))
    assert catalyst.frame(catalyst.inlined(resolved(cte))).collect()[0].x == 1


def test_a_parsed_tree(catalyst: Catalyst) -> None:
    text = "WITH t AS (SELECT lower(s) AS x FROM input)\nSELECT x FROM t WHERE x = 'a' |> SET x = upper(x)"
    root = catalyst.parsed(catalyst.parser().parsePlan(text))
    found: dict[str, list[plans.Node]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.setdefault(node.name, []).append(node)
        waiting.extend(node.parts())
    assert sorted(call.fields["nameParts"] for call in found["UnresolvedFunction"]) == [["lower"], ["upper"]]
    assert [call.at for call in found["UnresolvedFunction"] if call.fields["nameParts"] == ["lower"]] == [
        (1, 19)
    ]
    assert [text.fields["value"] for text in found["Literal"]] == ["a"]
    relation = next(r for r in found["UnresolvedRelation"] if r.fields["multipartIdentifier"] == ["input"])
    assert (relation.fields["isStreaming"], relation.fields["options"]) == (False, [])
    (named,) = found["UnresolvedWith"][0].fields["cteRelations"]
    assert (named["_1"], named["_2"].name) == ("t", "SubqueryAlias")
    deep = catalyst.parsed(catalyst.parser().parseExpression(" + ".join(["1"] * 500)))
    assert deep.name == "Add", "deeper than JSON could be nested"


def test_a_resolved_tree(events: DataFrame, catalyst: Catalyst) -> None:
    frame = events.selectExpr("CAST(id AS BIGINT) AS wide", "CAST(s AS DECIMAL(4, 1)) AS narrow")
    plan = resolved(frame)
    root = catalyst.tree(plan)
    wide, narrow = (named.children[0] for named in root.expressions)
    assert (root.name, [child.name.rpartition(".")[2] for child in root.children]) == (
        "Project",
        ["LogicalRDD"],
    )
    assert (wide.name, wide.type, wide.fields["wider"]) == ("Cast", "long", True)
    assert (narrow.type, narrow.fields["wider"]) == ("decimal", False)
    assert [each.name for each in catalyst.trees(plan.projectList())] == ["Alias", "Alias"]
    output = catalyst.output(plan)
    (column,) = plans.elements(output.take(1))
    assert id_of(catalyst.output_named(plan, "wide")) == id_of(column)
    assert catalyst.united(output.take(1), output).size() == 2, "none of them twice"


def jvm_server(spark: SparkSession) -> Any:
    """The server for calls from the JVM."""
    context: Any = spark.sparkContext
    return context._gateway._callback_server


def test_the_driver(spark: SparkSession) -> None:
    assert driver.is_alive(spark)
    assert driver.jvm_of(spark).java.lang.Math.abs(-1) == 1
    assert driver.hadoop_configuration(spark).get("fs.defaultFS")
    driver.await_calls(spark)
    server = jvm_server(spark)
    assert server.server_socket.fileno() < 1024
    driver.silence(spark, ["org.example.none"])
    driver.compile_pattern(spark, "a+")
    with pytest.raises(driver.java_errors()):
        driver.compile_pattern(spark, "(")


def test_java_sets_the_permissions_of_local_files(spark: SparkSession, tmp_path: Path) -> None:
    driver.lighten_local_files(spark)
    hadoop = driver.jvm_of(spark).org.apache.hadoop
    files = hadoop.fs.Path(str(tmp_path)).getFileSystem(driver.hadoop_configuration(spark))
    assert files.getRawFileSystem().getClass().getName() == "penstock.LocalFiles", "so that chmod is not run"
    for mode in (0o640, 0o755, 0o007, 0o421):
        made = hadoop.fs.Path(str(tmp_path / f"{mode:o}"))
        files.create(made, True).close()
        files.setPermission(made, hadoop.fs.permission.FsPermission(mode))
        assert (tmp_path / f"{mode:o}").stat().st_mode & 0o777 == mode
    assert len(list(tmp_path.iterdir())) == 4, "no checksum beside a file"


@pytest.mark.slow
def test_a_query_calls_a_function_with_each_batch_in_one_session(spark: SparkSession, tmp_path: Path) -> None:
    called: list[tuple[int, int, int]] = []

    def deliver(df: DataFrame, number: int) -> None:
        if number == 2:
            raise ValueError("no more")
        session = df.sparkSession
        called.append((number, df.count(), id(session)))
        assert session.range(3).count() == 3

    for number in range(3):
        file = tmp_path / f"{number}.txt"
        file.write_text("x\n" * (number + 1))
        os.utime(file, (number, number))  # files are read in the order of their times
    frame = spark.readStream.schema("value STRING").option("maxFilesPerTrigger", 1).text(str(tmp_path))
    query = queries.start_query(frame.writeStream.trigger(availableNow=True), deliver)
    with pytest.raises(Exception, match="no more"):
        query.awaitTermination()
    assert [(number, count) for number, count, _ in called] == [(0, 1), (1, 2)]
    assert len({session for _, _, session in called}) == 1


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
