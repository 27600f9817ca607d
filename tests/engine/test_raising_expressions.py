"""Expressions that raise on one event, in every place where a document may have them: none stops a batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.plan.analysis import offline
from penstock.engine.trials.trial import Bench, try_out
from penstock.frames.logs import LOGS
from tests.engine.test_streams import wait_for
from tests.flows import Streams, json_rows, keeper, letters, pipeline, run, running

pytestmark = pytest.mark.slow

SCHEMA = "id BIGINT, s STRING, d INT, n BIGINT, at TIMESTAMP"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
LARGE = 2**63 - 1


def event(id: int, minute: int = 0, *, n: int = 1, d: int = 1) -> dict[str, Any]:
    return {"id": id, "s": "x", "d": d, "n": n, "at": NOON + timedelta(minutes=minute)}


EVENTS = [
    *(event(id, n=LARGE if id == 2 else 1) for id in range(1, 12)),
    *(event(12, 1, n=LARGE, d=0), event(13, 1, n=LARGE)),  # a sum that is too large
    *(event(14, 2), event(15, 2)),  # a sum of decimals that is too large
    event(16, 3, d=0),  # a division by zero
    event(17, 4),
]


def bad(id: int) -> str:
    """An expression that is 1, and raises on one event."""
    return f"IF(id = {id}, CAST(s AS INT), 1)"


STEPS: list[dict[str, Any]] = [
    {"id": "filter", "type": "filter", "where": f"{bad(1)} = 1"},
    {"id": "map", "type": "map", "set": {"m": "IF(id = 2, n + 1, 1)", "k": "IF(id = 2, n + 1, 1) * 2"}},
    {"id": "sql", "type": "sql", "query": "SELECT *, 1 DIV IF(id = 3, 0, 1) AS q FROM input"},
    {
        "id": "join",
        "type": "sql",
        "query": f"SELECT input.* FROM input JOIN (VALUES (1), (2)) AS v(z) ON {bad(4)} = v.z",
    },
    {
        "id": "union",
        "type": "sql",
        "query": "SELECT id, s, d, n, at FROM input WHERE id % 2 = 0"
        f" UNION ALL SELECT id, s, d * {bad(5)}, n, at FROM input WHERE id % 2 = 1",
    },
    {"id": "generator", "type": "sql", "query": f"SELECT *, explode(array({bad(6)})) AS e FROM input"},
    {
        "id": "lateral",
        "type": "sql",
        "query": f"SELECT * FROM input, LATERAL explode(array({bad(7)})) AS t(v)",
    },
    {
        "id": "route",
        "type": "route",
        "rules": [{"when": f"{bad(8)} = 2", "sinks": ["out"]}, {"when": f"{bad(8)} = 1", "sinks": ["out"]}],
    },
    {"id": "validate", "type": "validate", "expectations": [{"name": "one", "where": f"{bad(9)} = 1"}]},
    {
        "id": "window",
        "type": "window",
        "time": "at",
        "size": "1m",
        "aggregates": {
            "a": f"sum({bad(10)})",
            "b": "sum(n) FILTER (WHERE id < 100)",
            "c": "sum(CAST(9e37 AS DECIMAL(38, 0)) * CAST(d AS DECIMAL(1, 0)))",
            "q": "count(*) / sum(d)",
        },
    },
]
FAILED = {step["id"]: [id] for id, step in enumerate(STEPS, 1)} | {"window": [None, None, None, 10]}
MINUTES = ["12:00", "12:04"]


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    streams = Streams(tmp_path)
    kinds = {
        "id": pa.int64(),
        "s": pa.string(),
        "d": pa.int32(),
        "n": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
    }
    columns = [pa.array([event[name] for event in EVENTS], kind) for name, kind in kinds.items()]
    streams.make("in", schema=SCHEMA).append(pa.record_batch(columns, list(kinds)))
    return streams


def document(path: Path) -> dict[str, Any]:
    source = {"type": "stream", "stream": "in", "until": "latest"}
    sinks = [{"id": "out", "type": "file", "path": str(path), "format": "json"}]
    return pipeline(source=source, processors=STEPS, sinks=sinks)


def tried(spark: SparkSession, raw: dict[str, Any]) -> Any:
    specs: dict[str, Any] = {"in": {"schema": SCHEMA}, "out": {}}
    streams = [{"kind": "Stream", "metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    lookup, known = offline([raw, *streams])
    samples = [{**each, "at": each["at"].isoformat()} for each in EVENTS]
    return try_out(Bench(spark, lookup, known), raw, samples).result


def test_each_step_fails_on_its_event_alone_in_a_test_run_and_live(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    raw = document(tmp_path / "out")
    result = tried(spark, raw)
    assert result.ok, result.errors
    failed = {step.id: [error.event.get("id") for error in step.errors] for step in result.steps}
    assert failed == FAILED
    assert [row["window_start"][11:16] for row in result.output["out"]] == MINUTES

    state = run(spark, raw, tmp_path / "ck", streams.site())
    assert state.outcome == "completed", state.error
    live = letters(streams)
    assert sorted(letter["step"] for letter in live) == sorted(step for step in FAILED for _ in FAILED[step])
    assert [row["window_start"][11:16] for row in json_rows(tmp_path / "out")] == MINUTES


def test_the_condition_of_an_output(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    streams.make("out")
    conditions = [f"id < 4 AND {bad(2)} = 1", f"id < 4 AND 1 / {bad(3)} = 1"]
    outputs = [{"stream": "out", "when": when} for when in conditions]
    spec = {"input": "in", "processors": [{"type": "filter", "where": "id < 9"}], "outputs": outputs}
    task = {"kind": "Task", "metadata": {"name": "test"}, "spec": spec}
    result = tried(spark, task)
    assert result.ok, result.errors
    told = {error.event["id"]: error.message.rpartition(" ")[2] for error in result.steps[-1].errors}
    assert (result.steps[-1].id, told) == ("outputs", {2: "out", 3: "out:2"})
    assert {id: [each["id"] for each in given] for id, given in result.output.items()} == {
        "out": [1],
        "out:2": [1],
    }
    with running(keeper(spark, task, tmp_path / "ck", site=streams.site())):
        wait_for("letters", lambda: len(letters(streams)) == 2)
        wait_for("events", lambda: LOGS.log(streams.place("out").directory).bounds().next == 2)
    assert {(letter["step"], letter["code"]) for letter in letters(streams)} == {
        ("outputs", "condition_failed")
    }
