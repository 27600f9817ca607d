"""Flows with sinks that fail as they are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.delivery.sink_states import Standing, read_standings
from penstock.engine.plan.flow import Flow
from penstock.frames.site import Site
from penstock.testing.faulty_sink import FaultySink, deliveries
from tests.flows import NO_STREAMS, Streams, flow_of, pipeline

SCHEMA = "id BIGINT"


def wait_for(what: str, ready: Callable[[], Any], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)


@dataclass
class Faulty:
    """A flow in a directory, whose sinks are all faulty; `sinks` are their other settings, by id."""

    root: Path
    sinks: Mapping[str, Mapping[str, Any]]
    site: Site = NO_STREAMS
    spec: Mapping[str, Any] | None = None

    def keeper(self, spark: SparkSession, **scripts: list[str]) -> Keeper:
        return Keeper("test", lambda: self.flow(scripts), spark, lambda _: str(self.root / "ck"))

    def flow(self, scripts: Mapping[str, list[str]]) -> Flow:
        sinks = [{"id": id, "type": "drop", **settings} for id, settings in self.sinks.items()]
        site = replace(self.site, state=self.root / "state")
        flow = flow_of(pipeline(sinks=sinks, **(self.spec or {})), site)
        faulty = [
            replace(
                part, component=FaultySink(path=str(self.root / part.id), script=scripts.get(part.id, []))
            )
            for part in flow.sinks
        ]
        return replace(flow, sinks=faulty)

    def batches(self, sink: str) -> list[int]:
        """The numbers of the batches that a sink has got, as they came."""
        return [batch for batch, _ in deliveries(self.root / sink)]

    def ids(self, sink: str) -> list[Any]:
        """The events that a sink has got, as they came."""
        rows = [row for _, rows in deliveries(self.root / sink) for row in rows]
        return [row.get("id", row.get("seq")) for row in rows]

    def attempts(self, sink: str) -> int:
        file = self.root / sink / "attempts"
        return file.stat().st_size if file.exists() else 0

    def standing(self, sink: str) -> Standing:
        return read_standings(self.root / "state", [sink])[sink]


def from_stream(root: Path, streams: Streams, sinks: Mapping[str, Mapping[str, Any]], **spec: Any) -> Faulty:
    """A flow that reads the stream `in`, ten events a batch."""
    batch = {"max_events": 10, "max_inflight": 1, "max_ms": 10}
    source = {"type": "stream", "stream": "in"}
    return Faulty(root, sinks, streams.site(), {"source": source, "batch": batch, **spec})


def numbers(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(first, first + count), pa.int64())})
