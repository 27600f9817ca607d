"""Late events, duplicates, sessions, windows of windows: decided event by event, however batches are cut."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.engine.trials.samples import MOST_EVENTS
from penstock.frames.logs import LOGS
from tests.flows import Streams, pipeline, run
from tests.oracle import ways
from tests.oracle.events import BEGIN, BIDS, NIGHTLY, SOME_EXAMPLES, TIMESTAMP, generate
from tests.oracle.models import Event, Windows, dedupe, hopping, micros, moment, sessions
from tests.oracle.rows import Row

pytestmark = pytest.mark.slow

SCHEMA = "id BIGINT, at TIMESTAMP, bidder BIGINT"
MINUTE = 60_000


def bids(count: int, *, late_s: int, gap_ms: int = 100, whole_ms: bool = False) -> pa.RecordBatch:
    """Bids with a number of their own, out of order by up to `late_s` seconds."""
    made = generate(-(-count // BIDS), gap_ms=gap_ms, late_s=late_s).streams["bids"].slice(0, count)
    at = made.column("date_time")
    if whole_ms:
        at = at.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(at.type)
    return numbered(at, made.column("bidder"))


def numbered(times: Any, bidders: Any) -> pa.RecordBatch:
    """Events with these times and bidders, in this order."""
    columns = [
        pa.array(range(len(times)), pa.int64()),
        pa.array(times, TIMESTAMP),
        pa.array(bidders, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["id", "at", "bidder"])


def events_of(batch: pa.RecordBatch, key: str | None) -> list[Event]:
    """The events as the models see them."""
    keys = batch.column(key).to_pylist() if key else [None] * batch.num_rows
    ids, times = batch.column("id").to_pylist(), batch.column("at").to_pylist()
    return [Event(id, micros(at), of) for id, at, of in zip(ids, times, keys, strict=True)]


def counted(windows: Windows, keys: Sequence[str]) -> ways.Expected:
    """The rows of windows whose aggregates are the number of events and the greatest id."""
    rows: list[Row] = [
        (moment(start), moment(end), *([key] if keys else []), len(events), max(e.id for e in events))
        for (start, end, key), events in windows.events.items()
    ]
    columns = ["window_start", "window_end", *keys, "n", "last"]
    late = [(event.id,) for event in windows.late]
    return ways.Expected(columns, rows, late, {"w": len(late)})


def passing(events: list[Event], within_ms: int) -> ways.Expected:
    """The rows that a `dedupe` lets pass."""
    kept, left_out = dedupe(events, within_ms)
    rows: list[Row] = [(event.id, moment(event.us), event.key) for event in kept]
    return ways.Expected(["id", "at", "bidder"], rows, left_out={"once": left_out})


def window(**how: Any) -> dict[str, Any]:
    aggregates = {"n": "count(*)", "last": "max(id)"}
    return {"id": "w", "type": "window", "time": "at", "aggregates": aggregates, "late": ways.LATE, **how}


def check(
    spark: SparkSession,
    root: Path,
    step: dict[str, Any],
    batch: pa.RecordBatch,
    model: Callable[[list[Event]], ways.Expected],
    *,
    max_events: int,
    key: str | None = None,
    at_once: bool = True,
) -> None:
    """All three ways agree with a model of one step."""
    third = -(-batch.num_rows // 3)
    ways.agree(
        spark,
        ways.Job([step], {"in": SCHEMA, **({ways.LATE: None} if step["type"] == "window" else {})}),
        lambda streams: model(events_of(streams["in"], key)),
        small={"in": batch.slice(0, MOST_EVENTS)},
        parts=[{"in": batch.slice(first, third)} for first in range(0, batch.num_rows, third)],
        root=root,
        max_events=max_events,
        at_once=at_once,
    )


BATCHES = 12 if NIGHTLY else 3
"""How many batches a live flow reads; one of 1,200 events and some state takes a second or two."""


def test_tumbling_windows_in_batches_and_in_one(spark: SparkSession, tmp_path: Path) -> None:
    step = window(size="10s", allowed_lateness="5s")
    batch = bids(1_200, late_s=40)
    check(
        spark,
        tmp_path,
        step,
        batch,
        lambda events: counted(hopping(events, 10_000, 10_000, lateness_ms=5_000), []),
        max_events=1_200 // BATCHES,
    )
    found = hopping(events_of(batch, None), 10_000, 10_000, lateness_ms=5_000)
    assert len(found.late) > 50
    assert sum(map(len, found.events.values())) + len(found.late) == batch.num_rows


def test_hopping_windows_of_which_some_are_closed(spark: SparkSession, tmp_path: Path) -> None:
    step = window(kind="hopping", size="20s", slide="5s", offset="1s", allowed_lateness="2s", keys=["bidder"])

    def model(events: list[Event]) -> ways.Expected:
        return counted(hopping(events, 20_000, 5_000, offset_ms=1_000, lateness_ms=2_000), ["bidder"])

    check(spark, tmp_path, step, bids(1_200, late_s=60), model, max_events=1_200 // BATCHES, key="bidder")


def test_sessions_take_all_events_that_are_not_late(spark: SparkSession, tmp_path: Path) -> None:
    """Of all bidders; and one goes on after exactly its gap, and not a microsecond later."""
    step = window(kind="session", gap="4s", allowed_lateness="3s", keys=["bidder"])
    drawn = bids(1_200, late_s=20)
    after = max(drawn.column("at").to_pylist())
    exact = [after + timedelta(seconds=s) for s in (0, 4, 8.000001, 30)]
    times, bidders = drawn.column("at").to_pylist() + exact, drawn.column("bidder").to_pylist() + [1] * 4
    batch = numbered(times, bidders)

    def model(events: list[Event]) -> ways.Expected:
        found = sessions(events, 4_000, lateness_ms=3_000)
        own = sorted(len(each) for (_, _, key), each in found.events.items() if key == 1)
        assert own == ([1, 1, 2] if len(events) == batch.num_rows else [])
        return counted(found, ["bidder"])

    check(spark, tmp_path, step, batch, model, max_events=1_200 // BATCHES, key="bidder")


def test_duplicates_over_five_hours(spark: SparkSession, tmp_path: Path) -> None:
    count = 276_000 if NIGHTLY else 6_000
    batch = bids(count, late_s=120, gap_ms=5 * 60 * MINUTE * BIDS // (50 * count), whole_ms=True)
    step = {"id": "once", "type": "dedupe", "keys": ["bidder"], "within": "1m", "time": "at"}

    check(
        spark,
        tmp_path,
        step,
        batch,
        lambda events: passing(events, MINUTE),
        max_events=count // BATCHES,
        key="bidder",
    )


KINDS: dict[str, tuple[dict[str, Any], Callable[[list[Event]], ways.Expected]]] = {
    "hopping": (
        window(kind="hopping", size="4s", slide="2s", allowed_lateness="1s", keys=["bidder"]),
        lambda events: counted(hopping(events, 4_000, 2_000, lateness_ms=1_000), ["bidder"]),
    ),
    "session": (
        window(kind="session", gap="2s", allowed_lateness="1s", keys=["bidder"]),
        lambda events: counted(sessions(events, 2_000, lateness_ms=1_000), ["bidder"]),
    ),
    "dedupe": (
        {"id": "once", "type": "dedupe", "keys": ["bidder"], "within": "2s", "time": "at"},
        lambda events: passing(events, 2_000),
    ),
}
HALVES = st.lists(st.tuples(st.integers(0, 24), st.integers(1, 3)), min_size=3, max_size=40)
"""Times in half seconds, so that many of them are exactly where a window ends, and keys."""


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=HALVES.filter(lambda drawn: len(set(drawn)) > 8), share=st.floats(0.3, 1))
@SOME_EXAMPLES
def test_any_events_in_any_cuts(
    spark: SparkSession, kind: str, drawn: list[tuple[int, int]], share: float
) -> None:
    """In a test run and live; by night as a backlog too, which the tests above have of other events."""
    step, model = KINDS[kind]
    batch = numbered([BEGIN + timedelta(milliseconds=500 * t) for t, _ in drawn], [key for _, key in drawn])
    with tempfile.TemporaryDirectory() as root:
        most = max(1, round(len(drawn) * share))
        check(spark, Path(root), step, batch, model, max_events=most, key="bidder", at_once=NIGHTLY)


def test_the_renamed_end_of_a_window_is_in_that_window(spark: SparkSession, tmp_path: Path) -> None:
    """A window that ends at 22:11:00 counts in [22:10, 22:11), whatever its end is called and by what."""
    steps = [
        {"id": "w", "type": "window", "time": "at", "size": "10s", "aggregates": {"n": "count(*)"}},
        {"type": "sql", "query": "SELECT n, window_end AS ended FROM input"},
        {
            "type": "window",
            "time": "ended",
            "size": "1m",
            "aggregates": {"n": "sum(n)", "last": "max(ended)"},
        },
        {"type": "rename", "fields": {"window_end": "closed"}},
        {
            "type": "window",
            "time": "closed",
            "size": "5m",
            "aggregates": {"minutes": "count(*)", "events": "sum(n)", "last": "max(last)"},
        },
    ]
    batch = bids(1_000, late_s=1, gap_ms=800)

    def oracle(streams: ways.Events) -> ways.Expected:
        first = hopping(events_of(streams["in"], None), 10_000, 10_000)
        found: dict[int, list[tuple[int, int, int]]] = {}
        for (start, end, _), events in first.events.items():
            found.setdefault(start // (5 * MINUTE * 1000), []).append(
                (start // (MINUTE * 1000), end, len(events))
            )
        rows: list[Row] = [
            (
                moment(number * 5 * MINUTE * 1000),
                moment((number + 1) * 5 * MINUTE * 1000),
                len({minute for minute, _, _ in windows}),
                sum(n for _, _, n in windows),
                moment(max(end for _, end, _ in windows)),
            )
            for number, windows in found.items()
        ]
        assert any(row[1] == row[4] for row in rows)
        columns = ["window_start", "window_end", "minutes", "events", "last"]
        return ways.Expected(columns, rows, left_out={"w": len(first.late)})

    third = -(-batch.num_rows // 3)
    ways.agree(
        spark,
        ways.Job(steps, {"in": SCHEMA}),
        oracle,
        small={"in": batch},
        parts=[{"in": batch.slice(first, third)} for first in range(0, batch.num_rows, third)],
        root=tmp_path,
        max_events=170 if NIGHTLY else None,
    )


def routed(root: Path, source: dict[str, Any]) -> dict[str, Any]:
    rules = [{"when": "id < 10", "sinks": ["few"]}]
    return pipeline(
        source=source,
        processors=[{"type": "route", "rules": rules, "default": ["many"]}],
        sinks=[{"id": name, "type": "stream", "stream": name} for name in ("few", "many")],
        batch={"max_events": 7},
    )


@pytest.mark.parametrize("kind", ["generate", "file", "stream"])
def test_a_route_sends_ten_and_ninety_whatever_the_source(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    streams = Streams(tmp_path)
    few, many = (streams.make(name, schema="id BIGINT") for name in ("few", "many"))
    ids = pa.record_batch({"id": pa.array(range(100), pa.int64())})
    streams.make("in", schema="id BIGINT").append(ids)
    (tmp_path / "in.json").write_text("".join(json.dumps({"id": id}) + "\n" for id in range(100)))
    file = {"path": str(tmp_path / "in.json"), "format": "json", "schema": "id BIGINT", "finite": True}
    sources: dict[str, dict[str, Any]] = {
        "generate": {"type": "generate", "count": 100, "row": {"id": "seq"}},
        "file": {"type": "file", **file},
        "stream": {"type": "stream", "stream": "in", "until": "latest"},
    }
    state = run(spark, routed(tmp_path, sources[kind]), tmp_path / "ck", streams.site())
    assert (state.outcome, state.error) == ("completed", None)
    found = {log: sorted(ways.read(log).column("id").to_pylist()) for log in (few, many)}
    assert found == {few: list(range(10)), many: list(range(10, 100))}
    assert LOGS.log(streams.place("test.dead").directory).bounds().next == 0
