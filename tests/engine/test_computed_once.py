"""A micro-batch is computed once, whatever becomes of its sinks, and what its steps report is complete."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.engine.delivery.events import ComputedEvents, FrameEvents
from penstock.errors import Suspended
from tests.engine.faults import Faulty, wait_for
from tests.flows import Streams, json_rows, letters, pipeline, run, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CALLS = """\
import os
def process(table):
    with open({path!r}, "ab") as calls:
        calls.write(b"x" * table.num_rows)
    return table
"""
"""A step that leaves a byte for each event that it sees."""

QUICK = {"backoff_ms": 1}


@pytest.mark.parametrize(
    ("sinks", "scripts"),
    [
        ({"lake": QUICK}, {"lake": ["fail", "lose", "busy:0.05", "ok"]}),
        ({"lake": QUICK, "mirror": QUICK}, {"lake": ["fail"], "mirror": ["lose", "fail"]}),
        (
            {"lake": QUICK, "mirror": {**QUICK, "required": False, "retries": 0}},
            {"mirror": ["fail"]},
        ),
        ({"lake": {"deadline_ms": 1000, **QUICK}, "mirror": QUICK}, {"lake": ["stall:600"]}),
    ],
    ids=["one sink", "two sinks", "one falls behind", "a deadline"],
)
def test_a_step_sees_each_event_once(
    spark: SparkSession,
    tmp_path: Path,
    sinks: dict[str, dict[str, Any]],
    scripts: dict[str, list[str]],
) -> None:
    calls = tmp_path / "calls"
    flow = Faulty(tmp_path, sinks)
    steps = [{"type": "python", "inline": CALLS.format(path=str(calls))}]
    flow.spec = {"processors": steps, "restart": {"max_attempts": 1}}
    flow.site = replace(flow.site, allow_python=True)
    kept = flow.keeper(spark, **scripts)
    kept.start()
    kept.join(180)
    overdue = "stall:600" in scripts.get("lake", [])
    assert kept.state.outcome == ("failed" if overdue else "completed")
    assert calls.stat().st_size == 10
    if not overdue:
        for sink in sinks:
            assert set(flow.ids(sink)) == set(range(10))


def files(directory: Path, number: int, events: int, bad_each: int) -> int:
    """Files of JSON lines in which one event of `bad_each` has a text that is no number; how many have."""
    directory.mkdir()
    bad = 0
    for file in range(number):
        rows = []
        for i in range(events):
            text = "bad" if i % bad_each == 0 else str(i)
            bad += text == "bad"
            rows.append(json.dumps({"id": file * events + i, "text": text}))
        (directory / f"{file}.json").write_text("\n".join(rows) + "\n")
    return bad


CAST = {"type": "sql", "query": "SELECT id, CAST(text AS INT) AS n FROM input"}


def from_files(tmp_path: Path) -> dict[str, Any]:
    return {
        "type": "file", "path": str(tmp_path / "in"), "format": "json",
        "schema": "id BIGINT, text STRING", "finite": True,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("word", ["break:4", "stall:600"])
def test_reports_survive_a_sink_that_fails_in_its_tasks(
    spark: SparkSession, tmp_path: Path, word: str
) -> None:
    """Eight partitions; tasks of the first sink fail, or are cancelled, when others have been read."""
    bad = files(tmp_path / "in", 8, 500, 100)
    streams = Streams(tmp_path)
    sinks = {"full": {"required": False, "retries": 0, "deadline_ms": 1500, **QUICK}, "good": QUICK}
    spec = {"source": from_files(tmp_path), "processors": [CAST]}
    flow = Faulty(tmp_path, sinks, streams.site(), spec)
    kept = flow.keeper(spark, full=[word], good=["slow:1"])
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    ops = kept.state.ops
    assert ops["dead_letters"] == len(letters(streams)) == bad
    step = ops["processors"]["sql"]
    assert (step["in"], step["out"], step["errors"]) == (4000, 4000 - bad, bad)
    assert sorted(flow.ids("good")) == sorted(flow.ids("full"))
    assert len(flow.ids("good")) == 4000 - bad


@pytest.mark.slow
def test_a_batch_of_nothing_but_letters(spark: SparkSession, tmp_path: Path) -> None:
    """More letters than fit into one chunk of the stream; all of them are kept, each once, also repeated."""
    streams = Streams(tmp_path)
    log = streams.make("in", schema="id BIGINT, text STRING")
    count = 12_000
    texts = pa.array(["x" * 1000] * count)
    log.append(pa.record_batch({"id": pa.array(range(count), pa.int64()), "text": texts}))
    source = {"type": "stream", "stream": "in"}
    batch = {"max_events": count, "max_bytes": 1_000_000_000}
    flow = Faulty(
        tmp_path, {"lake": {}}, streams.site(), {"source": source, "processors": [CAST], "batch": batch}
    )
    with running(flow.keeper(spark)) as kept:
        wait_for("the letters", lambda: kept.state.ops and kept.state.ops["dead_letters"] >= count)
    commits = tmp_path / "ck" / "commits"
    (commits / "0").unlink()  # as after a crash right before the commit
    (tmp_path / "state" / "ledger.db").unlink()
    with running(flow.keeper(spark)):
        wait_for("the commit", lambda: (commits / "0").exists())
    assert Counter(json.loads(letter["event"])["id"] for letter in letters(streams)) == Counter(range(count))


MINUTES = {
    "type": "window",
    "id": "minutes",
    "time": "at",
    "size": "60s",
    "aggregates": {"events": "count(*)"},
}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[], [MINUTES]], ids=["plain", "with state"])
def test_rows_that_are_lost_before_a_sink_reads_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[dict[str, Any]]
) -> None:
    """As with an executor that dies: sinks get the same rows, and letters and counts are kept once."""
    streams, lost = Streams(tmp_path), []
    bad = files(tmp_path / "in", 1, 500, 100)
    read = FrameEvents.frame

    def lossy(events: FrameEvents) -> DataFrame:
        context: Any = events.df.sparkSession.sparkContext
        for cached in context._jsc.getPersistentRDDs().values():
            cached.unpersist(True)
            lost.append(cached)
        return read(events)

    monkeypatch.setattr(FrameEvents, "frame", lossy)
    query = "SELECT id, CAST(text AS INT) AS n, timestamp_seconds(id) AS at FROM input"
    sinks = [
        {"id": name, "type": "file", "path": str(tmp_path / name), "format": "json"} for name in ("a", "b")
    ]
    processors = [{"type": "sql", "query": query}, *steps]
    document = pipeline(source=from_files(tmp_path), processors=processors, sinks=sinks)
    state = run(spark, document, tmp_path / "ck", streams.site())
    assert (state.outcome, bool(lost)) == ("completed", True)
    for name in ("a", "b"):
        rows = json_rows(tmp_path / name)
        assert sum(row["events"] if steps else 1 for row in rows) == 500 - bad
    assert state.ops["dead_letters"] == len(letters(streams)) == bad
    counts = state.ops["processors"]["sql"]
    assert (counts["in"], counts["out"], counts["errors"]) == (500, 500 - bad, bad)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[], [MINUTES]], ids=["plain", "with state"])
def test_a_computation_that_fails_when_a_part_is_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[dict[str, Any]]
) -> None:
    """As when a Python process cannot start in time: letters and counts of all parts are kept, once."""
    streams, tries = Streams(tmp_path), []
    bad = files(tmp_path / "in", 1, 500, 100)
    compute = ComputedEvents.compute

    def starved(events: ComputedEvents, *arguments: Any) -> None:
        compute(events, *arguments)
        tries.append(events)
        if len(tries) == 1:
            events._frame.unpersist()
            raise Suspended("the machine is too busy")

    monkeypatch.setattr(ComputedEvents, "compute", starved)
    query = "SELECT id, CAST(text AS INT) AS n, timestamp_seconds(id) AS at FROM input"
    sinks = [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}]
    processors = [{"type": "sql", "query": query}, *steps]
    document = pipeline(source=from_files(tmp_path), processors=processors, sinks=sinks)
    state = run(spark, document, tmp_path / "ck", streams.site())
    assert (state.outcome, len(tries) > 1) == ("completed", True)
    rows = json_rows(tmp_path / "out")
    assert sum(row["events"] if steps else 1 for row in rows) == 500 - bad
    assert state.ops["dead_letters"] == len(letters(streams)) == bad
    counts = state.ops["processors"]["sql"]
    assert (counts["in"], counts["out"], counts["errors"]) == (500, 500 - bad, bad)
