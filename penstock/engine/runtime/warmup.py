"""Small flows that make Spark load and compile the code that every flow needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.plan.flow import resolve_flow
from penstock.engine.plan.plan import plan_run
from penstock.engine.runtime.counters import Counters
from penstock.engine.runtime.run import Run
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGEST_S = 60.0
POLL_S = 0.05
EVENTS = 10

STREAM = {
    "source": {"type": "stream", "stream": "in", "until": "latest"},
    "processors": [{"type": "sql", "query": "SELECT id, text, id % 2 AS odd FROM input WHERE id >= 0"}],
    "sinks": [{"type": "stream", "stream": "out"}],
}
"""A pipeline with the most common steps: read a stream, run SQL, deliver to a stream."""


def warm_up(spark: SparkSession, directory: Path, specs: Iterable[Mapping[str, Any]] = (STREAM,)) -> None:
    """Run pipelines with these specs over a few events, one after the other, in an empty directory."""
    home = StreamHome(directory / "streams", directory / "memory")
    streams = {
        "in": StreamSpec.model_validate({"schema": "id BIGINT, text STRING"}),
        "out": StreamSpec(),
        "dead": StreamSpec(),
    }

    def place(stream: str) -> StreamPlace:
        return StreamPlace(stream, streams[stream], home.ensure(stream, "warm_up", streams[stream]))

    events = pa.table({"id": range(EVENTS), "text": [f"event {i}" for i in range(EVENTS)]})
    for batch in events.to_batches():
        LOGS.log(place("in").directory).append(batch)
    for number, spec in enumerate(specs):
        state = directory / f"state-{number}"
        site = Site(f"warm_up:{number}", 0, place, "in", dead="dead", state=state, policy=UNRESTRICTED)
        document = {"kind": "Pipeline", "metadata": {"name": f"warm_up_{number}"}, "spec": spec}
        flow = resolve_flow(document, lambda *_: None, site)
        counters = Counters({sink.id: sink.component.guarantee for sink in flow.sinks}, None)
        run = Run(plan_run(flow, spark), str(directory / f"checkpoint-{number}"), counters)
        run.start()
        try:
            until = time.monotonic() + LONGEST_S
            while not run.observe() and time.monotonic() < until:
                time.sleep(POLL_S)
            if run.failure is not None:
                raise RuntimeError(run.failure.problem.message)
        finally:
            run.stop()
            run.close()
