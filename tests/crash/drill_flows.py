"""The flows of the drill: three sinks each, dead letters, and late events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.testing.faulty_sink import FaultySink
from tests.engine.faults import Faulty
from tests.flows import Streams, pipeline
from tests.flows import flow_of as resolved
from tests.oracle import models
from tests.streams.kit import NIGHTLY

EVENTS, BATCH = (1000, 25) if NIGHTLY else (150, 25)
BAD_EACH, LATE_EACH = 20, 15
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
IN = "id BIGINT, text STRING, at TIMESTAMP"

CAST = {"type": "sql", "query": "SELECT id, CAST(text AS INT) AS n, at FROM input"}
WINDOW = {
    "type": "window", "time": "at", "size": "10s", "allowed_lateness": "5s", "late": "late",
    "aggregates": {"events": "count(*)", "total": "sum(id)"},
}  # fmt: skip
OUT = {
    "plain": "id BIGINT, n INT, at TIMESTAMP",
    "window": "window_start TIMESTAMP, window_end TIMESTAMP, events BIGINT, total BIGINT",
}


def events() -> pa.RecordBatch:
    """One a second; some have a text that is no number, some are a minute late. The last closes windows."""
    ids = range(EVENTS)
    times = [BEGIN + timedelta(seconds=i - (60 if i % LATE_EACH == 7 else 0)) for i in ids]
    times[-1] = BEGIN + timedelta(days=1)
    texts = ["bad" if i % BAD_EACH == 3 else str(i) for i in ids]
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array(texts),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


@dataclass(frozen=True)
class Expected:
    """What becomes of the events of a flow."""

    rows: list[dict[str, Any]]
    """Columns of what each sink gets."""
    late: list[int]
    """Ids of late events."""
    bad: list[int]
    """Ids of dead letters."""


def expected(root: Path) -> Expected:
    """By a model in plain Python."""
    all_rows = events().to_pylist()
    bad = [row["id"] for row in all_rows if row["text"] == "bad"]
    good = [row for row in all_rows if row["text"] != "bad"]
    if kind_of(root) == "plain":
        return Expected([{"id": row["id"]} for row in good], [], bad)
    judged = [models.Event(row["id"], models.micros(row["at"])) for row in good]
    found = models.hopping(judged, 10_000, 10_000, lateness_ms=5_000)
    last = max(found.events)  # it stays open
    closed = [own for key, own in found.events.items() if key != last]
    rows = [{"events": len(own), "total": sum(event.id for event in own)} for own in closed]
    return Expected(rows, [event.id for event in found.late], bad)


def streams_of(root: Path) -> Streams:
    """The streams of a flow, made if they are not there."""
    streams = Streams(root)
    streams.make("in", schema=IN)
    streams.make("out", schema=OUT[kind_of(root)])
    for name in ("late", "test.dead"):
        streams.make(name)
    return streams


def kind_of(root: Path) -> str:
    return root.name.partition("-")[0]


def flow_of(root: Path) -> Faulty:
    """The flow of a directory. Its mirror fails now and then, and falls behind."""
    steps: list[dict[str, Any]] = [CAST] if kind_of(root) == "plain" else [CAST, WINDOW]
    sinks = [
        {"id": "stream", "type": "stream", "stream": "out"},
        {"id": "files", "type": "file", "path": str(root / "files"), "format": "json"},
        {"id": "mirror", "type": "drop", "required": False, "retries": 0, "backoff_ms": 20},
    ]
    return Drilled(root, {}, streams_of(root).site(), {"steps": steps, "sinks": sinks})


class Drilled(Faulty):
    """A flow whose mirror is faulty, and whose other sinks are real."""

    def flow(self, scripts: Any) -> Any:
        assert self.spec is not None
        raw = pipeline(
            source={"type": "stream", "stream": "in"},
            processors=self.spec["steps"],
            sinks=self.spec["sinks"],
            batch={"max_events": BATCH, "max_inflight": 1, "max_ms": 10},
        )
        flow = resolved(raw, replace(self.site, state=self.root / "state"))
        mirror = FaultySink(path=str(self.root / "mirror"), script=scripts["mirror"])
        sinks = [replace(part, component=mirror) if part.id == "mirror" else part for part in flow.sinks]
        return replace(flow, id=self.root.name, sinks=sinks)  # a session runs one query of a name
