from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.file.source import FileSource
from penstock.errors import Invalid
from tests.flows import NO_STREAMS, Streams, json_rows, keeper, letters, pipeline, run

COLUMNS = "id BIGINT, name STRING"


def job(tmp_path: Path, source: dict[str, Any], **spec: Any) -> dict[str, Any]:
    whole = {"type": "file", "path": str(tmp_path / "in"), "format": "json", "finite": True, **source}
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    return pipeline(source=whole, sinks=sinks, **spec)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    directory = tmp_path / "in"
    directory.mkdir()
    (directory / "a.json").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
    (directory / "b.json").write_text('{"id": 3, "name": "c"}\n')
    return directory


@pytest.mark.parametrize("path", ["in", "in/*.json", "in/a.json"])
def test_a_directory_a_glob_or_a_file(spark: SparkSession, tmp_path: Path, inbox: Path, path: str) -> None:
    state = run(spark, job(tmp_path, {"path": str(tmp_path / path), "schema": COLUMNS}), tmp_path / "ck")
    assert state.outcome == "completed", state.error
    expected = {1, 2} if path.endswith("a.json") else {1, 2, 3}
    assert {row["id"] for row in json_rows(tmp_path / "out")} == expected


@pytest.mark.parametrize("kind", ["csv", "parquet", "orc", "text"])
def test_formats(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b,c")], COLUMNS)
    rows = rows.select("name").withColumnRenamed("name", "value") if kind == "text" else rows
    rows.write.format(kind).option("header", "true").save(str(tmp_path / "in"))
    state = run(spark, job(tmp_path, {"format": kind}), tmp_path / "ck")
    assert state.outcome == "completed", state.error
    key = "value" if kind == "text" else "name"
    assert sorted(row[key] for row in json_rows(tmp_path / "out")) == ["a", "b,c"]


def test_a_finite_job_that_is_run_again_reads_only_what_is_new(
    spark: SparkSession, tmp_path: Path, inbox: Path
) -> None:
    raw = job(tmp_path, {"schema": COLUMNS})
    assert run(spark, raw, tmp_path / "ck").ops["input_events"] == 3
    assert run(spark, raw, tmp_path / "ck").ops["input_events"] == 0
    (inbox / "c.json").write_text('{"id": 4, "name": "d"}\n')
    assert run(spark, raw, tmp_path / "ck").ops["input_events"] == 1
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [1, 2, 3, 4]


def test_an_old_file_that_comes_late_is_read_too(spark: SparkSession, tmp_path: Path, inbox: Path) -> None:
    import os

    raw = job(tmp_path, {"schema": COLUMNS})
    run(spark, raw, tmp_path / "ck")
    late = inbox / "late.json"
    late.write_text('{"id": 9, "name": "z"}\n')
    os.utime(late, (1_000_000_000, 1_000_000_000))
    run(spark, raw, tmp_path / "ck")
    assert 9 in {row["id"] for row in json_rows(tmp_path / "out")}


@pytest.mark.slow
def test_it_watches_for_new_files_even_in_a_directory_that_comes_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen = threading.Event()
    raw = job(tmp_path, {"schema": COLUMNS, "finite": False, "poll_ms": 50})
    running = threading.Event()

    def changed(state: Any) -> None:
        if state.phase == "running":
            running.set()
        if state.ops.get("input_events"):
            seen.set()

    kept = keeper(spark, raw, tmp_path / "ck", changed)
    kept.start()
    assert running.wait(60), kept.state
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / "a.json").write_text('{"id": 1, "name": "a"}\n')
    assert seen.wait(60), kept.state
    kept.drain()
    kept.join(60)
    assert json_rows(tmp_path / "out") == [{"id": 1, "name": "a"}]


def test_the_schema_is_inferred_and_pinned(spark: SparkSession, tmp_path: Path, inbox: Path) -> None:
    source = FileSource(path=str(inbox), format="json").pinned(spark, NO_STREAMS)
    assert source.schema_ == "id BIGINT,name STRING"
    assert source.pinned(spark, NO_STREAMS) is source


def test_no_file_no_schema(spark: SparkSession, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(Invalid) as caught:
            FileSource(path=str(path), format="json").pinned(spark, NO_STREAMS)
        assert (caught.value.problems[0].code, caught.value.problems[0].path) == ("schema_unknown", "schema")


def test_a_schema_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    for ddl in ("id BIGNT", "id", "", "a INT, A INT"):
        with pytest.raises(Invalid) as caught:
            FileSource(path=str(tmp_path), format="json", schema=ddl).pinned(spark, NO_STREAMS)
        assert caught.value.problems[0].path == "schema"


def test_a_malformed_record_fails_the_pipeline_and_names_it(
    spark: SparkSession, tmp_path: Path, inbox: Path
) -> None:
    (inbox / "c.json").write_text('{"id": "not a number"}\n')
    state = run(spark, job(tmp_path, {"schema": COLUMNS, "malformed": "fail"}), tmp_path / "ck")
    assert state.outcome == "failed"
    assert len(state.attempts) == 1  # bad data is as bad at the next attempt
    assert state.error is not None
    reason = 'column \'id\' is "not a number", not an integer (BIGINT), in {"id": "not a number"}'
    assert state.error["code"] == "wrong_type"
    assert state.error["message"].endswith(reason)
    assert json_rows(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["dateFormat", "TIMESTAMPFORMAT", "allowComments", "encoding", "mode"])
def test_an_option_that_would_be_another_rule_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    source = FileSource(path=str(tmp_path), format="json", schema=COLUMNS, options={name: "x"})
    with pytest.raises(Invalid) as caught:
        source.pinned(spark, NO_STREAMS)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("unsupported_option", f"options.{name}")


def test_documents_of_json_are_files_of_one_object_or_an_array(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('[{"id": 1,\n "name": "a"},\n {"id": "x"}]')
    (tmp_path / "in" / "b.json").write_text('{"id": 2,\n "name": "b"}')
    (tmp_path / "in" / "c.json").write_text('{"id": 3}\n{"id": 4}')
    streams = Streams(tmp_path)
    raw = job(tmp_path, {"schema": COLUMNS, "options": {"multiLine": "true"}})
    state = run(spark, raw, tmp_path / "ck", streams.site())
    assert state.outcome == "completed", state.error
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [1, 2]
    kept = {letter["event"]: letter["code"] for letter in letters(streams)}
    assert kept == {'{"id": "x"}': "wrong_type", '{"id": 3}\n{"id": 4}': "not_json"}


def test_directories_hold_columns_and_a_letter_holds_the_line(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        b'{"id": 1, "price": 1.50}',
        b' {"id": 2, "price": 1.255, "more": 1.0}\t',
        b'{"id": "\xff"}',
        b"",
    ]
    for day, text in {"2026-01-31": lines[0], "2026-02-01": b"\n".join(lines[1:])}.items():
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        (tmp_path / "in" / f"day={day}" / "a.json").write_bytes(text)
    streams = Streams(tmp_path)
    raw = job(tmp_path, {"schema": "id BIGINT, price DECIMAL(5,2), day DATE NOT NULL"})
    state = run(spark, raw, tmp_path / "ck", streams.site())
    assert state.outcome == "completed", state.error
    assert json_rows(tmp_path / "out") == [{"id": 1, "price": 1.5, "day": "2026-01-31"}]
    first, second = sorted(letters(streams), key=lambda letter: str(letter["code"]))
    assert (first["code"], first["reason"]) == ("invalid_utf8", "byte 9 is not UTF-8")
    assert first["event"] == '{"id": "\ufffd"}'
    assert (second["code"], second["event"]) == ("out_of_range", lines[1].decode().strip())


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_malformed_record_is_a_dead_letter(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (tmp_path / "mixed").mkdir()
    wrong = {"json": "not_json", "csv": "wrong_length"}[kind]
    lines = {
        "json": ['{"id": 1, "name": "a"}', '{"id": "x", "name": "b"}', "no json", '{"id": 2, "name": "c"}'],
        "csv": ["id,name", "1,a", "x,b", "3,4,5,6", "2,c"],
    }[kind]
    (tmp_path / "mixed" / f"a.{kind}").write_text("\n".join(lines) + "\n")
    source = {"type": "file", "path": str(tmp_path / "mixed"), "format": kind, "finite": True}
    sink = {"type": "file", "path": str(tmp_path / "out"), "format": "json"}
    raw = pipeline(source={**source, "schema": "id BIGINT, name STRING"}, sinks=[sink])
    streams = Streams(tmp_path)
    state = run(spark, raw, tmp_path / "ck", streams.site())
    assert state.outcome == "completed", state.error
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [1, 2]
    kept = letters(streams)
    assert [letter["event"] for letter in kept] == lines[-3:-1]
    assert {letter["step"] for letter in kept} == {"source"}
    assert [letter["code"] for letter in kept] == ["wrong_type", wrong]
    assert kept[0]["reason"] == "column 'id' is \"x\", not an integer (BIGINT)"
    assert state.ops["processors"]["source"]["errors"] == 2


def test_a_malformed_record_can_be_read_as_nulls(spark: SparkSession, tmp_path: Path, inbox: Path) -> None:
    (inbox / "c.json").write_text("no json at all\n")
    state = run(spark, job(tmp_path, {"schema": COLUMNS, "malformed": "nulls"}), tmp_path / "ck")
    assert state.outcome == "completed", state.error
    assert len(json_rows(tmp_path / "out")) == 4


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_events_that_a_filter_drops_were_read_all_the_same(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    rows = spark.range(10).selectExpr("id", "'x' AS name")
    rows.write.format(kind).option("header", "true").save(str(tmp_path / "in"))
    steps = [{"type": "filter", "where": "id >= 7"}]
    raw = job(tmp_path, {"format": kind, "schema": COLUMNS}, processors=steps)
    ops = run(spark, raw, tmp_path / "ck").ops
    assert (ops["input_events"], ops["sinks"]["file"]["events"]) == (10, 3)


def test_max_bytes_and_max_inflight_bound_a_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(6):
        (tmp_path / "in" / f"{i}.json").write_text(f'{{"id": {i}, "name": "{"x" * 1000}"}}\n')
    batch = {"max_bytes": 1100, "max_inflight": 2}
    state = run(spark, job(tmp_path, {"schema": COLUMNS}, batch=batch), tmp_path / "ck")
    assert state.ops["batches"] == 3
    assert len(list((tmp_path / "out").glob("penstock_batch=*"))) == 3
