"""What a flow cannot process is kept, and the rest goes on (invariant 7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.engine.plan.python_steps import Limits, PythonStep, PythonSteps
from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT, NOTE
from penstock.policy import UNRESTRICTED
from penstock.processors.base import BadEvent, BatchProcessor, Desk, Outcome, Refused, Work
from tests.cli.commands import wait_for
from tests.flows import Streams, keeper, letters, pipeline, running
from tests.processors.arrow_kit import EVENT_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NOTE_ARROW = pa.struct(
    [
        *((name, pa.string()) for name in ("kind", "step", "code", "message", "row")),
        ("event", EVENT_COLUMN),
        ("taken", pa.int64()),
        ("given", pa.int64()),
        ("ms", pa.float64()),
    ]
)
SHAPE = pa.schema([("n", pa.int64()), (EVENT, EVENT_COLUMN)])


class Step(BatchProcessor):
    """Does what a test says."""

    work: Callable[[list[int]], list[int] | Outcome]

    def output(self, schema: StructType, stage: Any) -> StructType:
        return schema

    def open(self, desk: Desk) -> Work:
        def run(batch: pa.RecordBatch) -> Outcome:
            made = self.work(batch.column("n").to_pylist())
            return made if isinstance(made, Outcome) else Outcome(numbers(made))

        return run


def numbers(values: list[int]) -> pa.RecordBatch:
    events = [{"offset": value, "key": f"k{value}"} for value in values]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, pa.int64()), pa.array(events, EVENT_COLUMN)], schema=SHAPE
    )


def ran(
    *works: Callable[[list[int]], Any], batches: list[list[int]]
) -> tuple[list[int], list[dict[str, Any]]]:
    """What steps make of batches: the numbers that go on, and the notes."""
    steps = [PythonStep(f"s{i}", Step(work=work), SHAPE) for i, work in enumerate(works)]
    group = PythonSteps(
        "pipeline:test",
        steps,
        pa.field(NOTE, NOTE_ARROW),
        limits=Limits(len(batches[0]), 2**24),
        policy=UNRESTRICTED,
        testing=False,
    )
    out, notes = [], []
    for batch in group(map(numbers, batches)):
        for row in batch.to_pylist():
            if row[NOTE] is None:
                out.append(row["n"])
            else:
                notes.append(row[NOTE])
    return out, notes


def faults(notes: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(n["step"], n["code"], json.loads(n["row"])["n"]) for n in notes if n["kind"] == "fault"]


def no_sevens(values: list[int]) -> list[int]:
    if any(value % 7 == 0 for value in values):
        raise Refused("seven", "there is a seven in it")
    return values


def test_the_smallest_part_that_fails_is_noted_and_the_rest_goes_on_in_order() -> None:
    out, notes = ran(no_sevens, lambda ns: [n * 10 for n in ns], batches=[list(range(1, 31)), [7], [8]])
    assert out == [n * 10 for n in [*range(1, 31), 8] if n % 7]
    assert faults(notes) == [("s0", "seven", n) for n in (7, 14, 21, 28, 7)]
    assert next(n for n in notes if n["kind"] == "fault")["event"]["key"] == "k7"
    stats = {n["step"]: (n["taken"], n["given"]) for n in notes if n["kind"] == "stats"}
    assert stats == {"s0": (32, 27), "s1": (27, 27)}


def test_a_step_names_bad_events_itself() -> None:
    def odd(values: list[int]) -> Outcome:
        bad = [BadEvent(i, "odd", "not even") for i, v in enumerate(values) if v % 2]
        return Outcome(numbers([v for v in values if not v % 2]), bad, ["looked"])

    out, notes = ran(odd, batches=[[1, 2, 3, 4]])
    assert out == [2, 4]
    assert faults(notes) == [("s0", "odd", 1), ("s0", "odd", 3)]
    assert [n["message"] for n in notes if n["kind"] == "log"] == ["looked"]


@pytest.mark.parametrize("error", [Fault("broken", "no more"), Retryable("later")])
def test_some_errors_are_not_the_fault_of_an_event(error: Exception) -> None:
    def fails(values: list[int]) -> list[int]:
        raise error

    with pytest.raises(type(error)):
        ran(fails, batches=[[1, 2]])


def test_all_of_a_batch_may_fail() -> None:
    out, notes = ran(lambda ns: 1 / 0, batches=[[1, 2, 3]])
    assert out == []
    assert [code for _, code, _ in faults(notes)] == ["step_failed"] * 3


def test_sql_that_fails_on_an_event_keeps_it_with_the_exact_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = Streams(tmp_path)
    source = streams.make("in", schema="id BIGINT, s STRING")
    out = streams.make("out", schema="id BIGINT, n BIGINT")
    raw = pipeline(
        source={"type": "stream", "stream": "in"},
        processors=[
            {"id": "divide", "type": "sql", "query": "SELECT id, 100 DIV CAST(s AS INT) AS n FROM input"},
            {"id": "large", "type": "filter", "where": "n > 10"},
        ],
        sinks=[{"type": "stream", "stream": "out"}],
    )
    keys = pa.array([b"a", b"b", b"c", b"d", b"e"])
    events = {"id": pa.array([1, 2, 3, 4, 5]), "s": ["1", "x", "0", "5", "50"], "_key": keys}
    source.append(pa.record_batch(events))
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        wait_for("two events", lambda: out.bounds().next == 2)
        wait_for("the batch", lambda: kept.state.ops["batches"] == 1)
    (chunk,) = out.read(0)
    assert chunk.batch is not None
    assert chunk.batch.to_pylist() == [{"id": 1, "n": 100, "_key": b"a"}, {"id": 4, "n": 20, "_key": b"d"}]
    assert [(k["event"], k["key"], k["code"], k["step"], k["offset"]) for k in letters(streams)] == [
        ('{"id":2,"s":"x"}', b"b", "cast_invalid_input", "divide", "1"),
        ('{"id":3,"s":"0"}', b"c", "divide_by_zero", "divide", "2"),
    ]
    steps = {
        id: {name: counts[name] for name in ("in", "out", "dropped", "errors")}
        for id, counts in kept.state.ops["processors"].items()
    }
    assert steps == {
        "divide": {"in": 5, "out": 3, "dropped": 0, "errors": 2},
        "large": {"in": 3, "out": 2, "dropped": 1, "errors": 0},
    }
