"""Windows in running flows: what is closed when, and what comes of late events."""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.plan.plan import plan_run
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.run import Run
from penstock.frames.hidden import EVENT
from penstock.processors.support.ticker import Clock
from penstock.processors.window import WindowProcessor
from penstock.sql.rows import to_json
from penstock.streams.log import Log
from tests.engine.test_streams import wait_for
from tests.flows import Streams, flow_of, json_rows, keeper, letters, pipeline, run, running
from tests.processors.kit import stage, through, with_event

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("connector", "format"),
    [("file", "json"), ("file", "csv"), ("file", "parquet"), ("file", "text"), ("spark", "parquet")],
)
def test_a_backlog_of_files_is_judged_in_the_order_of_their_times(
    spark: SparkSession, tmp_path: Path, connector: str, format: str
) -> None:
    """Spark reads the largest file of a micro-batch first; live, the oldest came first."""
    directory, files = tmp_path / "in", 12
    directory.mkdir()
    for number in range(files):
        times = [BEGIN + timedelta(seconds=10 * number + i / 100) for i in range(1 + 7 * number % 12)]
        file = directory / f"{(5 * number) % files}.{format}"
        table = pa.table({"at": pa.array(times, pa.timestamp("us", tz="UTC"))})
        if format == "parquet":
            pq.write_table(table, file)
        elif format == "csv":
            pacsv.write_csv(pa.table({"at": [time.isoformat() for time in times]}), file)
        else:
            lines = [
                {"json": f'{{"at": "{time.isoformat()}"}}'}.get(format, time.isoformat()) for time in times
            ]
            file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    source: dict[str, Any] = {"type": connector, "format": format, "finite": True}
    place = {"path": str(directory)}
    source |= place if connector == "file" else {"options": place}
    steps = [count()]
    if format == "text":
        steps = [{"type": "sql", "query": "SELECT CAST(value AS TIMESTAMP) AS at FROM input"}, *steps]
    else:
        source["schema"] = "at TIMESTAMP"
    state = run(spark, flow(tmp_path, *steps, source=source), tmp_path / "ck")
    assert (state.outcome, state.error) == ("completed", None)
    assert sum(n for _, n in found(tmp_path / "out")) == sum(1 + 7 * i % 12 for i in range(files))


def test_a_restart_after_the_clock_was_set_past_all_windows_closes_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", "1.json", 1, 5, 12)
    source = {"type": "file", "path": str(tmp_path / "in"), "format": "json", "finite": True}
    source["schema"] = "id BIGINT, at TIMESTAMP"
    raw = flow(tmp_path, count(), source=source)
    site = Streams(tmp_path).site()
    first = Run(plan_run(flow_of(raw, site), spark), str(tmp_path / "ck"), Counters({"file": "exactly-once"}))
    first.start()
    first._running.awaitTermination()
    assert site.state is not None
    assert Clock(site.state).flush(str(first._running.id))
    first.close()  # as if it had been killed here
    again = Run(plan_run(flow_of(raw, site), spark), str(tmp_path / "ck"), Counters({"file": "exactly-once"}))
    again.start()
    wait_for("end of the second run", again.observe)
    again.close()
    assert again.failure is None
    assert found(tmp_path / "out") == [("00:00", 2), ("00:10", 1)]


STEPS = [
    count(kind="hopping", size="20s", slide="5s", offset="1s", allowed_lateness="5s", keys=["who"]),
    count(kind="session", size=None, gap="4s", allowed_lateness="5s", aggregates=None, emit="events"),
]


@pytest.mark.parametrize("step", STEPS, ids=["hopping", "events of sessions"])
def test_old_data_gives_the_same_windows_as_live_data(
    spark: SparkSession, streams: Streams, tmp_path: Path, step: dict[str, Any]
) -> None:
    """In one batch, in many small ones, and while it comes in: all as if the events had been a table."""
    whole = events(*(i * 1.7 + (i % 3) * 1.5 + i // 20 * 9 for i in range(60)), 300)  # the last closes all
    expected = _of_table(spark, whole, step)
    streams.make("in", schema=SCHEMA).append(whole)
    live = streams.make("live", schema=SCHEMA)
    ways: dict[str, dict[str, Any]] = {
        "big": {},
        "small": {"batch": {"max_ms": 10, "max_events": 7, "max_inflight": 1}},
        "live": {"source": {"type": "stream", "stream": "live"}},
    }
    with contextlib.ExitStack() as stack:
        for name, spec in ways.items():
            site = streams.site(f"pipeline:{name}")
            stack.enter_context(
                running(keeper(spark, flow(tmp_path / name, step, **spec), tmp_path / name / "ck", site=site))
            )
        for first in range(0, len(whole), 10):
            live.append(whole.slice(first, 10))
            time.sleep(0.2)
        for name in ways:
            wait_for(name, lambda at=tmp_path / name / "out": len(json_rows(at)) >= len(expected))
    assert len(expected) > 10
    for name in ways:
        assert sorted(map(str, json_rows(tmp_path / name / "out"))) == expected


def _of_table(spark: SparkSession, whole: pa.RecordBatch, step: dict[str, Any]) -> list[str]:
    """What a window makes of a table, without what the last event is in."""
    processor = WindowProcessor.model_validate({k: v for k, v in step.items() if k != "id"})
    frame = with_event(spark.createDataFrame(pa.Table.from_batches([whole])), offset="id")
    made = through(processor, frame, stage(testing=True)).drop(EVENT)
    closed = made.filter("window_end < '2024-01-01T00:04:50Z'")
    rows = closed.select(to_json(*map(f.col, closed.columns))).collect()
    return sorted(str(json.loads(row[0])) for row in rows)


def test_late_events_are_kept_and_counted(spark: SparkSession, streams: Streams, tmp_path: Path) -> None:
    log, side = streams.make("in", schema=SCHEMA), streams.make("late")
    raw = flow(tmp_path, count(late="late", allowed_lateness="2s"))
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        for batch in (events(1, 25), events(26, None), events(3, 18, 24, 60), events(70)):
            append(log, batch, kept)
        wait_for("windows", lambda: len(found(tmp_path / "out")) == 2)
        wait_for("count", lambda: kept.state.ops["processors"]["w"]["dropped"] == 2)
    assert found(tmp_path / "out") == [("00:00", 1), ("00:20", 3)]
    assert [json.loads(value)["at"][14:19] for value in values(side)] == ["00:03", "00:18"]
    assert [letter["code"] for letter in letters(streams)] == ["no_time"]
    assert kept.state.ops["processors"]["w"]["errors"] == 1


def test_late_events_are_counted_where_nobody_keeps_them(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    with running(keeper(spark, flow(tmp_path, count()), tmp_path / "ck", site=streams.site())) as kept:
        for batch in (events(1, 25), events(26), events(3, 18, 24, 60)):
            append(log, batch, kept)
        wait_for("count", lambda: kept.state.ops["processors"]["w"]["dropped"] == 2)


def test_windows_of_system_time_are_closed_by_the_clock(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    log = streams.make("in", schema=SCHEMA)
    log.append(events(1, 2, 3))
    raw = flow(tmp_path, count(time="system", size="1s"))
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        wait_for("windows", lambda: sum(n for _, n in found(tmp_path / "out")) == 3)
        log.append(events(4))
        wait_for("window", lambda: sum(n for _, n in found(tmp_path / "out")) == 4)
        assert kept.state.ops["input_events"] == 4
        assert kept.state.ops["processors"]["w"]["dropped"] == 0


def append(log: Log, batch: pa.RecordBatch, kept: Keeper) -> None:
    """Events that make a batch of their own."""
    expected = kept.state.ops.get("input_events", 0) + len(batch)
    log.append(batch)
    wait_for("batch", lambda: kept.state.ops.get("input_events") == expected)


def values(log: Log) -> list[bytes]:
    """The raw events of a stream."""
    chunks = [chunk.batch for chunk in log.read(log.bounds().first)]
    return [value for batch in chunks if batch is not None for value in batch.column("value").to_pylist()]


def test_a_script_gets_each_window_whole_whatever_the_source_and_the_size_of_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = {"id": "seq", "at": "timestamp_millis(1767225600000 + seq * 1000)"}
    whole = "function processBatch(events) { return [{n: events.length}] }"
    document = pipeline(
        source={"type": "generate", "count": 100, "row": row},
        batch={"max_events": 10},
        processors=[
            count(size="25s", aggregates=None, emit="events"),
            {"type": "javascript", "inline": whole, "schema": "n BIGINT"},
        ],
        sinks=[{"type": "file", "path": str(tmp_path / "out"), "format": "json"}],
    )
    state = run(spark, document, tmp_path / "ck")
    assert (state.outcome, state.error) == ("completed", None)
    assert json_rows(tmp_path / "out") == [{"n": 25}] * 4
