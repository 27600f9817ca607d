"""Replaying dead letters: through the present revision, to the sinks, once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.connectors.base import DeliveryId
from penstock.engine.letters.notes import Note
from penstock.engine.letters.reader import Letterbox, Wanted
from penstock.engine.letters.replay import Redelivery, ReplayResult
from penstock.engine.letters.replay_entry import Begin, ranges
from penstock.engine.letters.states import Marks, Slice
from penstock.engine.letters.writer import Letters
from penstock.engine.plan.flow import Flow
from penstock.frames.logs import LOGS
from tests.flows import Streams, flow_of, letters, pipeline, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIVIDE = {"id": "divide", "type": "sql", "query": "SELECT id, 100 DIV CAST(s AS INT) AS n FROM input"}
LARGE = {"id": "large", "type": "filter", "where": "n > 10"}
SINK = {"id": "out", "type": "stream", "stream": "out"}


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    found = Streams(tmp_path)
    found.make("in", schema="id BIGINT, s STRING")
    found.make("out", schema="id BIGINT NOT NULL, n BIGINT")
    return found


def divide(streams: Streams, *, steps: Any = (DIVIDE, LARGE), **spec: Any) -> Flow:
    source = {"type": "stream", "stream": "in"}
    raw = pipeline(**{"source": source, "processors": list(steps), "sinks": [SINK], **spec})
    return flow_of(raw, streams.site())


def write(
    flow: Flow, *rows: dict[str, Any], step: str = "divide", first: int | None = 0, batch: int = 0
) -> None:
    """Letters as a batch of the flow leaves them."""
    notes = [
        Note(
            "fault",
            step,
            "bad",
            "no good",
            json.dumps(row),
            {"offset": None if first is None else first + i, "key": f"k{i}", "headers": {"h": "1"}},
        )
        for i, row in enumerate(rows)
    ]
    owner = step if step in [sink.id for sink in flow.sinks] else "$notes"
    Letters(flow).write(notes, DeliveryId("test", owner, "query", batch))


@contextmanager
def box(flow: Flow) -> Iterator[Letterbox]:
    site = flow.site
    assert site.state is not None
    with Marks.open(site.state, "test.dead") as marks:
        yield Letterbox(LOGS.log(site.stream(site.dead).directory), site.flow, marks)


def replay(
    spark: SparkSession, flow: Flow, begin: Begin = "step", *, end: int = 5000, dry_run: bool = False
) -> ReplayResult:
    """Replay what waits, below an offset."""
    with box(flow) as found:
        waiting = found.page(0, end, Wanted(states=frozenset({"new", "replaying"}))).letters
        chosen = [letter for letter in waiting if letter.offset < end]
        result = ReplayResult(request=uuid.uuid4().hex, dry_run=dry_run)
        Redelivery(flow, spark, found).replay(chosen, begin, result)
        return result


def states(flow: Flow) -> list[str]:
    with box(flow) as found:
        return [letter.mark.state for letter in found.page(0, 5000, Wanted()).letters]


def edit(flow: Flow, offset: int, event: dict[str, Any]) -> None:
    with box(flow) as found:
        found.marks.edit(offset, json.dumps(event))


def rows(streams: Streams, id: str = "out") -> list[dict[str, Any]]:
    log = LOGS.log(streams.place(id).directory)
    return [row for chunk in log.read(0) if chunk.batch is not None for row in chunk.batch.to_pylist()]


def told(result: ReplayResult) -> tuple[int, int, list[tuple[int, str]]]:
    assert result.error is None, result.error
    return result.replayed, result.failed_again, [(each.offset, each.code) for each in result.refused]


def test_from_the_failed_step(spark: SparkSession, streams: Streams) -> None:
    flow = divide(streams)
    write(flow, {"id": 1, "s": "x"}, {"id": 2, "s": "5"}, {"id": 3, "s": "y"}, {"id": 4})
    edit(flow, 0, {"id": 1, "s": "4"})
    edit(flow, 3, {"id": 4, "S": "2", "t": "?"})
    assert told(replay(spark, flow, dry_run=True)) == (3, 0, [(3, "does_not_fit")])
    assert states(flow) == ["new"] * 4
    assert told(replay(spark, flow)) == (2, 1, [(3, "does_not_fit")])
    assert rows(streams) == [
        {"id": 1, "n": 25, "_key": b"k0", "_headers": [("h", "1")]},
        {"id": 2, "n": 20, "_key": b"k1", "_headers": [("h", "1")]},
    ]
    assert states(flow) == ["replayed", "replayed", "replayed", "new", "new"]
    again = letters(streams)[-1]
    assert (again["code"], again["attempt"], again["replay_of"], again["offset"]) == (
        "cast_invalid_input",
        "2",
        "2",
        "2",
    )
    assert (again["key"], json.loads(again["headers"])) == (b"k2", {"h": "1"})
    edit(flow, 3, {"id": 4, "S": "2"})
    edit(flow, 4, {"id": 3, "s": "1"})
    assert told(replay(spark, flow)) == (2, 0, [])
    assert [row["n"] for row in rows(streams)] == [25, 20, 50, 100]


def test_a_replay_that_was_cut_off_goes_on_and_delivers_nothing_twice(
    spark: SparkSession, streams: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"id": "files", "type": "file", "path": str(tmp_path / "files"), "format": "json"}
    flow = divide(streams, sinks=[SINK, files])
    write(flow, {"id": 1, "s": "1"}, {"id": 2, "s": "no"}, {"id": None, "s": "3"})

    ack, finish = Marks.ack, Marks.finish

    def crash_at(point: str) -> None:
        def acking(marks: Marks, slice: Slice, sink: str) -> None:
            if sink == point:
                raise RuntimeError("killed")
            ack(marks, slice, sink)

        def finishing(marks: Marks, slice: Slice, outcomes: Any) -> None:
            raise RuntimeError("killed")

        monkeypatch.setattr(Marks, "ack", acking)
        monkeypatch.setattr(Marks, "finish", finishing)

    # A sink has it, and that was not noted; all have it, and it does not count as replayed yet.
    for point in ("out", "files", "finish"):
        crash_at(point)
        result = replay(spark, flow, end=3)
        assert (result.error and result.error.message) == "killed"
        assert states(flow)[:3] == ["replaying"] * 3
    monkeypatch.setattr(Marks, "ack", ack)
    monkeypatch.setattr(Marks, "finish", finish)
    assert told(replay(spark, flow, end=3)) == (2, 1, [])
    assert [row["id"] for row in rows(streams)] == [1]
    written = [json.loads(line) for file in (tmp_path / "files").rglob("*.json") for line in file.open()]
    assert sorted(row.get("id") or 0 for row in written) == [0, 1]
    assert states(flow) == ["replayed"] * 3 + ["new"] * 2
    assert {(each["step"], each["code"]) for each in letters(streams)[3:]} == {
        ("divide", "cast_invalid_input"),
        ("out", "null_value"),
    }


def test_a_letter_of_a_sink_goes_to_that_sink_alone(spark: SparkSession, streams: Streams) -> None:
    other = streams.make("other")
    flow = divide(streams, sinks=[SINK, {"id": "other", "type": "stream", "stream": "other"}])
    write(flow, {"id": None, "n": 7}, step="out")
    edit(flow, 0, {"id": 1, "n": 7})
    assert told(replay(spark, flow)) == (1, 0, [])
    assert [(row["id"], row["n"]) for row in rows(streams)] == [(1, 7)]
    assert other.bounds().next == 0


def test_a_letter_keeps_the_sinks_that_were_chosen_for_it(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    other = streams.make("other")
    route = {"type": "route", "rules": [{"when": "id < 2", "sinks": ["out"]}], "default": ["other"]}
    raw = pipeline(
        source={"type": "generate", "count": 4, "row": {"id": "seq", "s": "if(seq % 2 = 0, '5', 'x')"}},
        processors=[route, DIVIDE],
        sinks=[SINK, {"id": "other", "type": "stream", "stream": "other"}],
    )
    assert run(spark, raw, tmp_path / "ck", streams.site()).outcome == "completed"
    assert ([row["id"] for row in rows(streams)], other.bounds().next) == ([0], 1)
    flow = flow_of(raw, streams.site())
    offsets = {json.loads(each["event"])["id"]: n for n, each in enumerate(letters(streams))}
    edit(flow, offsets[1], {"id": 1, "s": "4"})
    edit(flow, offsets[3], {"id": 3, "s": "4"})
    alone = flow_of({**raw, "spec": {**raw["spec"], "processors": [DIVIDE], "sinks": [SINK]}}, streams.site())
    assert told(replay(spark, alone, dry_run=True)) == (1, 0, [(offsets[3], "unknown_sink")])
    assert told(replay(spark, flow)) == (2, 0, [])
    assert ([row["id"] for row in rows(streams)], other.bounds().next) == ([0, 1], 2)


def test_from_the_start(spark: SparkSession, streams: Streams) -> None:
    source = LOGS.log(streams.place("in").directory)
    source.append(pa.record_batch({"id": pa.array(range(40)), "s": ["4"] * 40}))
    flow = divide(streams)
    write(flow, {"id": 5, "n": 0}, {"id": 6, "n": 0}, step="large", first=5)
    write(flow, {"id": 5, "n": 1}, step="large", first=5, batch=1)
    write(flow, {"id": 30, "n": 0}, step="gone", first=30, batch=2)
    write(flow, {"id": 99, "n": 0}, step="large", first=99, batch=3)
    write(flow, {"id": 0, "n": 0}, step="large", first=None, batch=4)
    write(flow, {"id": 7, "s": "2"}, step="divide", first=7, batch=5)
    edit(flow, 1, {"id": 6, "n": 9})
    assert told(replay(spark, flow, "step", dry_run=True))[2] == [(3, "unknown_step")]
    result = told(replay(spark, flow, "start"))
    assert result == (4, 0, [(1, "edited_letter"), (5, "not_rereadable"), (4, "evicted")])
    assert [(row["id"], row["n"]) for row in rows(streams)] == [(5, 25), (30, 25), (7, 50)]
    with_other = divide(
        streams, source={"type": "generate", "row": {"id": "seq", "s": "cast(seq AS STRING)"}}
    )
    assert {code for _, code in told(replay(spark, with_other, "start"))[2]} >= {"not_rereadable"}


def test_events_that_have_no_offset_are_told_apart(spark: SparkSession, streams: Streams) -> None:
    generate = {"type": "generate", "row": {"id": "seq", "s": "cast(seq AS STRING)"}}
    flow = divide(streams, source=generate)
    write(flow, {"id": 1, "s": "x"}, {"id": 2, "s": "1"}, first=None)
    assert told(replay(spark, flow)) == (1, 1, [])
    with box(flow) as found:
        outcomes = [letter.mark.replays[0].outcome for letter in found.page(0, 2, Wanted()).letters]
    assert outcomes == ["failed_again", "delivered"]
    assert (letters(streams)[-1]["replay_of"], letters(streams)[-1].get("offset")) == ("0", None)


def test_steps_that_remember_take_no_letters(spark: SparkSession, streams: Streams) -> None:
    timed = {**DIVIDE, "query": "SELECT 100 DIV CAST(s AS INT) AS n, timestamp_seconds(id) AS at FROM input"}
    window = {"id": "count", "type": "window", "size": "1m", "time": "at", "aggregates": {"n": "count(*)"}}
    flow = divide(streams, steps=[timed, window], sinks=[{"type": "drop"}])
    write(flow, {"id": 1, "s": "1"})
    write(flow, {"n": 3}, step="drop", batch=1)
    assert told(replay(spark, flow)) == (1, 0, [(0, "stateful_replay")])


def test_letters_of_other_flows_are_left_alone(spark: SparkSession, streams: Streams) -> None:
    flow = divide(streams)
    write(flow, {"id": 1, "s": "1"})
    LOGS.log(streams.place("test.dead").directory).append(
        pa.record_batch({"value": pa.array([b"any"], pa.binary())})
    )
    other = flow_of(pipeline(), streams.site("pipeline:other"))
    write(other, {"id": 1, "s": "1"})
    with box(flow) as found:
        assert [letter.offset for letter in found.page(0, 10, Wanted()).letters] == [0]
        assert list(found.at([2, 1, 0, 9])) == [0]


def test_ranges_cover_all_offsets_in_few_pieces() -> None:
    assert ranges([4]) == [(4, 5)]
    assert ranges([1, 2, 3, 9, 10]) == [(1, 4), (9, 11)]
    assert ranges([0, 5, 100, 1000], most=2) == [(0, 101), (1000, 1001)]
    assert ranges(list(range(0, 1000, 2)), most=4)[-1][1] == 999
