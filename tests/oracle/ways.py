"""The three ways in which a document is run: as a test run, over a backlog, and live with a crash.

All of them run the same steps over the same events, so all of them must give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.plan.analysis import offline
from penstock.engine.trials.trial import Bench, try_out
from penstock.frames.hidden import EVENT
from penstock.streams.log import Log
from penstock.streams.rendering import plain_values
from tests.engine.faults import wait_for
from tests.flows import Streams, keeper, letters, pipeline, run
from tests.oracle.rows import Row, difference, rows_of

LATE = "late"
"""The stream that steps name for late events, if the job has one."""

Events = Mapping[str, pa.RecordBatch]
"""By stream: its events in the order in which they are read."""


@dataclass(frozen=True)
class Job:
    """Steps over a stream, the first of `schemas`; a `join` reads the others. One without a schema is raw."""

    steps: Sequence[Mapping[str, Any]]
    schemas: Mapping[str, str | None]

    @property
    def stream(self) -> str:
        return next(iter(self.schemas))

    def document(self, sink: Mapping[str, Any], *, batch: Mapping[str, Any], **source: Any) -> dict[str, Any]:
        """The pipeline with a sink."""
        return pipeline(
            source={"type": "stream", "stream": self.stream, **source},
            processors=[dict(step) for step in self.steps],
            sinks=[dict(sink)],
            batch=dict(batch),
        )


@dataclass(frozen=True)
class Expected:
    """What an oracle says of events."""

    columns: Sequence[str]
    rows: Sequence[Row]
    late: Sequence[Row] = ()
    """The `id` of each event that the stream of late ones must have."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By step: how many events it must have left out as late or as duplicates."""


@dataclass
class Result:
    """What came of the events."""

    table: pa.Table
    late: list[Row] = field(default_factory=list)
    left_out: Mapping[str, int] | None = None
    """By step, where that was counted once: not over a crash."""


Oracle = Callable[[Events], Expected]


def agree(
    spark: SparkSession,
    job: Job,
    oracle: Oracle,
    *,
    small: Events,
    parts: Sequence[Events],
    root: Path,
    max_events: int | None,
    at_once: bool = True,
) -> None:
    """Assert that all three ways give what the oracle says.

    A test run gets the events of `small`; the other two get all `parts`, the last one in batches of
    `max_events` with a crash in between. It is left out without `max_events`, and the backlog without
    `at_once`.
    """
    tried, columns = as_test(spark, job, small)
    expect("test run", oracle(small), tried)
    expected = oracle(whole(parts))
    if at_once:
        expect("backlog", expected, backlog(spark, job, columns, whole(parts), root / "backlog"))
    if max_events is not None:
        expect("live", expected, dribbled(spark, job, columns, parts, root / "live", max_events=max_events))


def expect(way: str, expected: Expected, actual: Result) -> None:
    """Assert that a result is as expected."""
    found = rows_of(actual.table, expected.columns) if actual.table.num_columns else []
    told = difference(expected.rows, found)
    assert told is None, f"{way}: {told}"
    told = difference(expected.late, actual.late)
    assert told is None, f"{way}, late events: {told}"
    if actual.left_out is not None:
        counted = {step: actual.left_out[step] for step in expected.left_out}
        assert counted == dict(expected.left_out), f"{way}: events left out"


def whole(parts: Sequence[Events]) -> Events:
    """All events of several parts."""
    return {name: pa.concat_batches([part[name] for part in parts]) for name in parts[0]}


def as_test(
    spark: SparkSession, job: Job, events: Events, times: Sequence[datetime] = ()
) -> tuple[Result, str]:
    """A test run, which also gives the schema of a stream that could take the rows.

    With `times` the samples say when they were appended.
    """
    raw = job.document({"id": "out", "type": "drop"}, batch={})
    documents = [
        {"kind": "Stream", "metadata": {"name": name}, "spec": _spec(schema)}
        for name, schema in job.schemas.items()
    ]
    lookup, known = offline([raw, *documents])
    given = {step["id"]: as_json(events[step["stream"]]) for step in job.steps if step["type"] == "join"}
    samples = as_json(events[job.stream])
    for sample, at in zip(samples, times, strict=False):
        sample["$meta"] = {"time": at.isoformat()}
    trial = try_out(Bench(spark, lookup, known), raw, samples, given)
    assert trial.result.ok, trial.result.errors
    steps = trial.result.steps
    assert [error for step in steps for error in step.errors] == []
    columns = ", ".join(f"`{each.name}` {each.type}" for each in steps[-1].columns)
    late = [(event["id"],) for step in steps for event in step.late] if LATE in job.schemas else []
    left_out = {step.id: len(step.late) + step.dropped for step in steps}
    return Result(trial.sinks["out"].drop_columns([EVENT]), late, left_out), columns


def as_json(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Events as a person would write them down."""
    columns = [plain_values(column) for column in batch.columns]
    rows = [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    made: list[dict[str, Any]] = json.loads(json.dumps(rows))
    return made


def backlog(spark: SparkSession, job: Job, columns: str, events: Events, root: Path) -> Result:
    """All events are there before the flow starts, and are read in batches of the default size."""
    live = Live(spark, job, columns, root)
    live.append(events)
    left_out = live.finish({})
    return live.result(left_out)


def dribbled(
    spark: SparkSession,
    job: Job,
    columns: str,
    parts: Sequence[Events],
    root: Path,
    *,
    max_events: int,
) -> Result:
    """Events come in parts, in small batches; in the middle the flow crashes, and goes on afterwards."""
    batch = {"max_events": max_events, "max_ms": 10, "max_inflight": 1}
    live = Live(spark, job, columns, root)
    half = len(parts) // 2
    kept = live.keeper(batch)
    kept.start()
    try:
        for part in parts[:half]:
            live.append(part)
            wait_for_all(kept, live.logs[job.stream])
        live.append(parts[half])
    finally:
        live.crash(kept)
    for part in parts[half + 1 :]:
        live.append(part)
    live.finish(batch)
    return live.result()


class Live:
    """A flow in a directory: its streams, its checkpoint, and what it has written into the stream `out`."""

    def __init__(self, spark: SparkSession, job: Job, columns: str, root: Path) -> None:
        self.spark, self.job, self.root = spark, job, root
        self.streams = Streams(root)
        self.logs = {name: self.streams.make(name, **_spec(schema)) for name, schema in job.schemas.items()}
        self.out = self.streams.make("out", schema=columns)

    def append(self, events: Events) -> None:
        for name, batch in events.items():
            if name in self.logs and batch.num_rows:
                self.logs[name].append(batch)

    def keeper(self, batch: Mapping[str, Any], **source: Any) -> Keeper:
        raw = self.job.document({"type": "stream", "stream": "out"}, batch=batch, **source)
        return keeper(self.spark, raw, self.root / "ck", site=self.streams.site())

    def finish(self, batch: Mapping[str, Any]) -> dict[str, int]:
        """Read all there is, and end; how many events each step has left out."""
        raw = self.job.document({"type": "stream", "stream": "out"}, batch=batch, until="latest")
        state = run(self.spark, raw, self.root / "ck", site=self.streams.site())
        assert (state.outcome, state.error) == ("completed", None), state
        return {id: step["dropped"] for id, step in state.ops["processors"].items()}

    def crash(self, kept: Keeper) -> None:
        """End a flow at once, in the middle of a batch or between the delivery of one and its commit."""
        kept.abort()
        kept.join(60)
        assert kept.ended
        planned, committed = (
            {int(file.name): file for file in self.root.glob(f"ck/*/{log}/*") if file.name.isdigit()}
            for log in ("offsets", "commits")
        )
        last = max(planned, default=0)
        # The first batch begins where the cursor stands, which a commit has moved already.
        if last > 0 and last in committed:
            committed[last].unlink()

    def result(self, left_out: Mapping[str, int] | None = None) -> Result:
        assert letters(self.streams) == []
        late = []
        if LATE in self.logs:
            late = [(json.loads(value)["id"],) for value in read(self.logs[LATE]).column("value").to_pylist()]
        return Result(read(self.out), late, left_out)


def wait_for_all(kept: Keeper, log: Log) -> None:
    """Wait until a flow has read all that a stream holds."""

    def done() -> bool:
        assert not kept.ended, kept.state
        return bool(kept.state.ops.get("input_events", 0) >= log.bounds().next)

    wait_for("end of the stream", done)


def read(log: Log) -> pa.Table:
    """The events of a stream."""
    batches = [chunk.batch for chunk in log.read(log.bounds().first) if chunk.batch is not None]
    return pa.Table.from_batches(batches) if batches else pa.table({"value": pa.array([], pa.string())})


def _spec(schema: str | None) -> dict[str, str]:
    return {} if schema is None else {"schema": schema}
