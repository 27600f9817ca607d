"""Windows in running flows: what is closed when, and what comes of late events."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.streams.log import Log
from tests.engine.test_streams import wait_for
from tests.flows import Streams, json_rows, keeper, letters, pipeline, run, running

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = "id BIGINT, at TIMESTAMP, who STRING"


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def events(*seconds: float | None) -> pa.RecordBatch:
    """Events that many seconds after the beginning."""
    times = [None if s is None else BEGIN + timedelta(seconds=s) for s in seconds]
    return pa.record_batch(
        {
            "id": pa.array(range(len(seconds)), pa.int64()),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "who": [f"w{i % 2}" for i in range(len(seconds))],
        }
    )


def count(**how: Any) -> dict[str, Any]:
    return {"id": "w", "type": "window", "time": "at", "size": "10s", "aggregates": {"n": "count(*)"}, **how}


def found(directory: Path) -> list[tuple[str, int]]:
    """The windows in files: when each begins, and how many events it has."""
    return sorted((row["window_start"][14:19], row["n"]) for row in json_rows(directory))


def flow(tmp_path: Path, *processors: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return pipeline(
        **{
            "source": {"type": "stream", "stream": "in"},
            "processors": list(processors),
            "sinks": [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}],
            "batch": {"max_ms": 10},
            **spec,
        }
    )


def write(directory: Path, name: str, *seconds: float) -> None:
    directory.mkdir(exist_ok=True)
    rows = ({"id": i, "at": (BEGIN + timedelta(seconds=s)).isoformat()} for i, s in enumerate(seconds))
    (directory / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_finite_input_closes_its_last_window_and_goes_on_later(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "1.json", 1, 5, 12, 27)
    source = {
        "type": "file",
        "path": str(tmp_path / "in"),
        "format": "json",
        "finite": True,
        "schema": "id BIGINT, at TIMESTAMP",
    }
    raw = flow(tmp_path, count(), source=source)
    state = run(spark, raw, tmp_path / "ck")
    assert (state.outcome, state.error) == ("completed", None)
    assert found(tmp_path / "out") == [("00:00", 2), ("00:10", 1), ("00:20", 1)]
    assert state.ops["input_events"] == 4
    assert state.ops["processors"]["w"] | {"ms": 0} == {
        "in": 4, "out": 3, "dropped": 0, "errors": 0, "ms": 0, "shared": True,
    }  # fmt: skip
    write(tmp_path / "in", "2.json", 3, 70)
    state = run(spark, raw, tmp_path / "ck")
    assert (state.outcome, state.error) == ("completed", None)
    assert found(tmp_path / "out")[3:] == [("01:10", 1)]
    assert run(spark, raw, tmp_path / "ck").outcome == "completed"
    assert len(found(tmp_path / "out")) == 4
