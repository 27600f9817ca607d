from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import Analysis, analyse, offline
from tests.flows import pipeline


def judged(spark: SparkSession | None, raw: Any, *others: Any) -> Analysis:
    lookup, known = offline([raw, *others])
    return analyse(raw, lookup, known, spark=spark)


def test_the_columns_after_every_step(spark: SparkSession) -> None:
    source = {"type": "generate", "rate": 1, "row": {"id": "seq", "amount": "rand()"}}
    steps = [
        {"id": "taxed", "type": "sql", "query": "SELECT id, amount * 1.2 AS gross FROM input"},
        {"type": "filter", "where": "gross > 5"},
    ]
    analysis = judged(spark, pipeline(source=source, processors=steps))
    assert analysis.valid, analysis.errors
    assert [(s.id, [(c.name, c.type) for c in s.columns]) for s in analysis.steps] == [
        ("source", [("id", "bigint"), ("amount", "double")]),
        ("taxed", [("id", "bigint"), ("gross", "double")]),
        ("filter", [("id", "bigint"), ("gross", "double")]),
    ]


def test_an_unknown_column_in_the_second_step_names_the_columns_there_are(spark: SparkSession) -> None:
    steps = [
        {"type": "sql", "query": "SELECT seq AS id, time AS at FROM input"},
        {"type": "sql", "query": "SELECT seq FROM input"},
    ]
    (error,) = judged(spark, pipeline(processors=steps)).errors
    assert (error.code, error.path) == ("unknown_column", "spec.processors[1].query")
    assert "id" in (error.hint or "")
    assert "at" in (error.hint or "")


def test_what_a_sink_cannot_take_is_told_at_the_sink(spark: SparkSession) -> None:
    sinks = [{"type": "file", "path": "x", "format": "json", "partition_by": ["contry"]}]
    (error,) = judged(spark, pipeline(sinks=sinks)).errors
    assert (error.code, error.path) == ("unknown_column", "spec.sinks[0].partition_by[0]")


def test_the_id_and_the_promise_of_a_stream() -> None:
    raw = {"kind": "Stream", "metadata": {"name": "Orders raw"}, "spec": {"wal": {"sync": True}}}
    analysis = judged(None, raw)
    assert analysis.id == "orders_raw"
    assert "power loss" in (analysis.guarantee or "")
    wrong = judged(None, {**raw, "spec": {"wal": {"sync": "sometimes"}}})
    assert (wrong.valid, wrong.id, wrong.guarantee) == (False, "orders_raw", None)
    for nameless in ({}, {"metadata": []}, {"metadata": {"name": 7}}, {"metadata": {"name": " "}}, 7):
        assert judged(None, nameless).id is None
    assert judged(None, pipeline("a b")).guarantee is None


def test_an_inferred_schema_is_pinned_in_the_document(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "who": {"name": "x"}}\n')
    file = {"type": "file", "path": str(tmp_path), "format": "json"}
    analysis = judged(spark, raw := pipeline(source=file))
    pinned = "id BIGINT,who STRUCT<name: STRING>"
    assert analysis.document == pipeline(source={**file, "schema": pinned})
    assert raw == pipeline(source=file), "the given document stays as it was"
    source = {"kind": "Source", "metadata": {"name": "in"}, "spec": file}
    assert judged(spark, source).document == {**source, "spec": {**file, "schema": pinned}}
    referring = pipeline(source={"ref": "in"})
    assert judged(spark, referring, source).document == referring


def test_a_source_may_be_declared_before_its_files_are_there(spark: SparkSession, tmp_path: Path) -> None:
    spec = {"type": "file", "path": str(tmp_path / "later"), "format": "json"}
    source = {"kind": "Source", "metadata": {"name": "in"}, "spec": spec}
    analysis = judged(spark, source)
    assert analysis.valid
    assert [(w.code, w.path) for w in analysis.warnings] == [("schema_unknown", "spec.schema")]
    (error,) = judged(spark, pipeline(source={"ref": "in"}), source).errors
    assert (error.code, error.path) == ("schema_unknown", "spec.source.ref")


def test_streams_have_their_schema_checked(spark: SparkSession) -> None:
    stream = {"kind": "Stream", "metadata": {"name": "s"}, "spec": {"schema": "id BIGNT"}}
    (error,) = judged(spark, stream).errors
    assert (error.code, error.path) == ("invalid_schema", "spec.schema")


def test_what_has_no_effect_is_a_warning(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    stream = {"kind": "Stream", "metadata": {"name": "dead"}}
    raw = pipeline(
        source={"type": "file", "path": str(tmp_path), "format": "json"},
        sinks=[{"type": "spark", "format": "noop", "options": {"password": "hunter2", "token": "${TOKEN}"}}],
        batch={"max_events": 5},
        dead_letters="dead",
    )
    import os

    os.environ["TOKEN"] = "x"
    analysis = judged(spark, raw, stream)
    assert analysis.valid, analysis.errors
    assert {(w.code, w.path) for w in analysis.warnings} == {
        ("no_effect", "spec.batch.max_events"),
        ("plain_secret", "spec.sinks[0].options.password"),
    }


def stream(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": name}, "spec": spec}


def task(**spec: Any) -> dict[str, Any]:
    steps = [{"id": "taxed", "type": "sql", "query": "SELECT id, amount * 1.2 AS gross FROM input"}]
    whole = {"input": "s", "outputs": [{"stream": "t"}], "processors": steps, **spec}
    return {"kind": "Task", "metadata": {"name": "tax"}, "spec": whole}


ORDERS = stream("s", schema="id BIGINT, amount DOUBLE")


def test_a_task_is_judged_between_its_streams(spark: SparkSession) -> None:
    out = stream("t", schema="id BIGINT, gross DOUBLE")
    analysis = judged(spark, task(outputs=[{"stream": "t", "when": "gross > 5"}]), ORDERS, out)
    assert analysis.valid, analysis.errors
    assert [(s.id, [c.name for c in s.columns]) for s in analysis.steps] == [
        ("source", ["id", "amount"]),
        ("taxed", ["id", "gross"]),
    ]


def test_what_is_wrong_with_a_task_is_told_where_it_is(spark: SparkSession) -> None:
    def faults(*others: Any, **spec: Any) -> list[tuple[str, str | None]]:
        return [(e.code, e.path) for e in judged(spark, task(**spec), *others).errors]

    out = stream("t", schema="id BIGINT")
    assert faults(ORDERS, out) == [("extra_column", "spec.outputs[0].stream")]
    raw = stream("t")
    outputs = [{"stream": "t"}, {"stream": "t", "when": "gros > 5"}, {"stream": "t", "when": "gross"}]
    assert faults(ORDERS, raw, outputs=outputs) == [
        ("unknown_column", "spec.outputs[1].when"),
        ("sql_type", "spec.outputs[2].when"),
    ]
    assert faults(stream("s"), raw) == [("unknown_column", "spec.processors[0].query")]


def test_sources_and_sinks_that_run_are_judged_with_their_streams(spark: SparkSession) -> None:
    generate = {"type": "generate", "row": {"id": "seq"}, "stream": "s"}
    source = {"kind": "Source", "metadata": {"name": "gen"}, "spec": generate}
    analysis = judged(spark, source, ORDERS)
    assert analysis.valid, analysis.errors
    (error,) = judged(spark, source, stream("s", schema="id STRING")).errors
    assert (error.code, error.path) == ("wrong_type", "spec.stream")
    made = {**source, "spec": {"type": "generate", "auto_create_stream": True}}
    assert judged(spark, made).valid

    lake = {"type": "file", "path": "x", "format": "json", "partition_by": ["nothing"], "stream": "s"}
    sink = {"kind": "Sink", "metadata": {"name": "lake"}, "spec": lake}
    (error,) = judged(spark, sink, ORDERS).errors
    assert (error.code, error.path) == ("unknown_column", "spec.partition_by[0]")


def test_a_pipeline_that_is_sent_events_is_judged_with_their_schema(spark: SparkSession) -> None:
    http = {"type": "http", "schema": "id BIGINT, name STRING"}
    analysis = judged(spark, pipeline(source=http))
    assert analysis.valid, analysis.errors
    assert [c.name for c in analysis.steps[0].columns] == ["id", "name"]
    source = {"kind": "Source", "metadata": {"name": "door"}, "spec": {**http, "stream": "s"}}
    assert judged(spark, source, ORDERS).valid
    analysis = judged(spark, pipeline(source={"ref": "door"}), source, ORDERS)
    assert [c.name for c in analysis.steps[0].columns] == ["id", "amount"], "those of the stream it fills"
    analysis = judged(spark, pipeline(source={"type": "http"}))
    assert [c.name for c in analysis.steps[0].columns] == ["value", "key", "headers"]


def test_settings_of_a_stream_that_change_nothing_are_warnings() -> None:
    def warned(**spec: Any) -> list[str | None]:
        analysis = judged(None, stream("s", **spec))
        assert analysis.valid, analysis.errors
        assert {w.code for w in analysis.warnings} <= {"no_effect"}
        return [w.path for w in analysis.warnings]

    assert warned() == []
    assert warned(storage="sqlite", wal={"segment_bytes": 5, "sync": True}) == ["spec.wal.segment_bytes"]
    assert warned(buffer={"spill": True}) == ["spec.buffer.spill"]
    assert warned(wal={"enabled": False}, buffer={"spill": True}) == []
    assert warned(wal={"enabled": False, "sync": True}) == ["spec.wal.sync"]


def test_settings_of_a_buffer_that_change_nothing_are_warnings() -> None:
    def warned(source: str = "http", **buffer: Any) -> list[str | None]:
        analysis = judged(None, pipeline(source={"type": source}, buffer=buffer))
        return [w.path for w in analysis.warnings if w.code == "no_effect"]

    assert warned(type="memory", spill=True, limit=5, limit_bytes=5, mode="timeout", timeout_ms=5) == []
    assert warned(spill=True) == ["spec.buffer.spill"]
    assert warned(mode="drop", timeout_ms=5) == ["spec.buffer.timeout_ms"]
    assert warned("generate", type="wal") == ["spec.buffer"]


def test_a_stream_in_kafka_is_never_transient() -> None:
    (error,) = judged(None, stream("s", storage="kafka", wal={"enabled": False})).errors
    assert (error.code, error.path) == ("exclusive_fields", "spec.storage")
    judgement = judged(None, stream("s", storage="kafka", wal={"max_segments": 3}))
    assert [warning.path for warning in judgement.warnings] == ["spec.wal.max_segments"]
    assert "on all in-sync replicas in Kafka" in (judgement.guarantee or "")


def test_without_spark_only_the_structure_is_judged() -> None:
    steps = [{"type": "sql", "query": "SELECT nothing FROM nowhere"}]
    assert judged(None, pipeline(processors=steps)).valid
    assert not judged(None, pipeline(source={"ref": "nobody"})).valid


def test_nothing_is_started_or_written(spark: SparkSession, tmp_path: Path) -> None:
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    source = {"type": "file", "path": str(tmp_path / "in"), "format": "json", "schema": "a INT"}
    assert judged(spark, pipeline(source=source, sinks=sinks)).valid
    assert list(tmp_path.iterdir()) == []
    assert spark.streams.active == []


@pytest.mark.parametrize(
    ("spec", "source", "code"),
    [
        ({}, {"type": "generate"}, None),
        ({"schema": "id INT"}, {"type": "generate"}, "typed_stream"),
        ({}, {"type": "stream", "stream": "Dead"}, "dead_letters_loop"),
    ],
)
def test_dead_letters_go_to_a_raw_stream_that_the_pipeline_does_not_read(
    spark: SparkSession, spec: dict[str, Any], source: dict[str, Any], code: str | None
) -> None:
    raw = pipeline(source=source, dead_letters="dead")
    found = [(error.code, error.path) for error in judged(spark, raw, stream("dead", **spec)).errors]
    assert found == ([(code, "spec.dead_letters")] if code else [])


def test_python_of_users_is_judged_where_it_is_allowed(spark: SparkSession) -> None:
    step = {"type": "python", "inline": "def process_row(event): return {'n': 1}", "schema": "n INT"}
    raw = pipeline(processors=[step])
    (error,) = judged(spark, raw).errors
    assert (error.code, error.path) == ("python_not_allowed", "spec.processors[0].type")
    lookup, known = offline([raw])
    allowed = analyse(raw, lookup, known, spark=spark, allow_python=True)
    assert allowed.valid, allowed.errors
    assert [(column.name, column.type) for column in allowed.steps[-1].columns] == [("n", "int")]
