"""The flows that are killed again and again while they deliver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.connectors.stream.sink import StreamSink
from penstock.engine.plan.flow import Flow
from penstock.frames.logs import LOGS
from penstock.streams.log import Log
from tests.engine.faults import Faulty
from tests.flows import Streams

EVENTS, BATCH, BAD = 100, 10, 7


class Kept(Streams):
    """Streams that another process can open again."""

    def log(self, id: str) -> Log:
        return LOGS.log(self.place(id).directory)


class ThreeSinks(Faulty):
    """One sink that knows a repetition, one that does not, and one that may fall behind."""

    @property
    def state(self) -> Path:
        """Where its ledger is."""
        return self.root / "state"

    def flow(self, scripts: Any) -> Flow:
        flow = super().flow(scripts)
        sinks = [
            replace(part, component=StreamSink(stream="out")) if part.id == "stream" else part
            for part in flow.sinks
        ]
        return replace(flow, id=self.root.name, sinks=sinks)  # a session runs one query of a name


def streams_of(root: Path) -> Kept:
    streams = Kept(root)
    streams.make("in", schema="id BIGINT")
    streams.make("out", schema="id BIGINT, share INT")
    streams.make("test.dead")
    return streams


def faulty_flow(root: Path) -> ThreeSinks:
    """The flow of a directory, with the streams that are there."""
    sinks = {"stream": {}, "console": {}, "mirror": {"required": False, "retries": 0, "backoff_ms": 20}}
    spec = {
        "source": {"type": "stream", "stream": "in"},
        "processors": [
            {"type": "sql", "query": f"SELECT id, CAST(1000 / (id - {BAD}) AS INT) AS share FROM input"}
        ],
        "batch": {"max_events": BATCH, "max_inflight": 1, "max_ms": 10},
    }
    return ThreeSinks(root, sinks, streams_of(root).site(), spec)
