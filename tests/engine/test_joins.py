"""Steps that remember events, in running flows: duplicates, and events of two streams."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.engine.test_streams import wait_for
from tests.flows import Streams, json_rows, keeper, pipeline, run, running

pytestmark = pytest.mark.slow

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path)


def batch(*rows: tuple[int, float]) -> pa.RecordBatch:
    """Events with an id, so many seconds after the beginning."""
    times = [BEGIN + timedelta(seconds=seconds) for _, seconds in rows]
    return pa.record_batch(
        {
            "id": pa.array([id for id, _ in rows], pa.int64()),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def to_files(tmp_path: Path, *processors: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return pipeline(
        **{
            "source": {"type": "stream", "stream": "in"},
            "processors": list(processors),
            "sinks": [{"type": "file", "path": str(tmp_path / "out"), "format": "json"}],
            "batch": {"max_ms": 10},
            **spec,
        }
    )


def test_duplicates_are_remembered_over_batches_and_restarts_and_then_forgotten(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema="id BIGINT, at TIMESTAMP")
    raw = to_files(tmp_path, {"id": "once", "type": "dedupe", "keys": ["id"], "within": "10s", "time": "at"})

    def feed(*batches: pa.RecordBatch) -> dict[str, Any]:
        with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
            for each in batches:
                expected = kept.state.ops.get("input_events", 0) + len(each)
                log.append(each)
                wait_for("batch", lambda n=expected: kept.state.ops.get("input_events") == n)
        return dict(kept.state.ops["processors"]["once"])

    first = feed(batch((1, 0), (2, 1), (1, 2)), batch((2, 3), (3, 4)))
    assert (first["in"], first["out"], first["dropped"]) == (5, 3, 2)
    second = feed(batch((3, 6)), batch((4, 70)), batch((5, 71)), batch((1, 72), (6, 3)))
    assert (second["in"], second["out"], second["dropped"]) == (5, 3, 2)  # one was there before, one is late
    assert sorted(row["id"] for row in json_rows(tmp_path / "out")) == [1, 1, 2, 3, 4, 5]


def test_two_streams_are_joined_and_those_without_a_partner_come_later(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    orders, payments = (streams.make(id, schema="id BIGINT, at TIMESTAMP") for id in ("in", "payments"))
    step = {
        "type": "join",
        "stream": "payments",
        "on": ["id"],
        "within": "10s",
        "kind": "left",
        "time": "at",
        "stream_time": "at",
    }
    orders.append(batch((1, 0), (2, 1)))
    payments.append(batch((1, 5), (2, 30)))

    def found() -> list[tuple[int, str | None]]:
        rows = json_rows(tmp_path / "out")
        return sorted((row["id"], (row.get("payments") or {}).get("at", "")[17:19]) for row in rows)

    with running(keeper(spark, to_files(tmp_path, step), tmp_path / "ck", site=streams.site())) as kept:
        wait_for("a pair", lambda: found() == [(1, "05")])
        orders.append(batch((3, 29), (4, 50)))
        payments.append(batch((9, 60)))
        wait_for("all that is certain", lambda: found() == [(1, "05"), (2, ""), (3, "")])
        assert kept.state.ops["input_events"] == 4
    assert [cursor.reader for cursor in payments.storage.cursors()] == ["pipeline:test/join"]


def test_a_finite_input_waits_for_no_partner_in_the_end(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    streams.make("payments", schema="id BIGINT, at TIMESTAMP").append(batch((1, 5), (2, 900)))
    rows = [
        {"id": id, "at": (BEGIN + timedelta(seconds=s)).isoformat()} for id, s in ((1, 0), (2, 1), (3, 500))
    ]
    (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
    source = {
        "type": "file",
        "path": str(tmp_path / "in.json"),
        "format": "json",
        "finite": True,
        "schema": "id BIGINT, at TIMESTAMP",
    }
    join = {
        "type": "join",
        "stream": "payments",
        "on": "id = p.id AND p.at >= at",
        "into": "p",
        "within": "10s",
        "kind": "left",
        "time": "at",
        "stream_time": "at",
    }
    count = {
        "type": "window",
        "time": "at",
        "size": "1h",
        "aggregates": {"n": "count(*)", "paid": "count(p)"},
    }
    state = run(spark, to_files(tmp_path, join, count, source=source), tmp_path / "ck", streams.site())
    assert (state.outcome, state.error) == ("completed", None)
    assert [(row["n"], row["paid"]) for row in json_rows(tmp_path / "out")] == [(3, 1)]
