"""Running flows in tests: the same way a worker does, without a registry."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.control.fleet.assignments import Flows
from penstock.control.fleet.dispatch import Dispatch
from penstock.control.fleet.lifecycle import Keeper, State
from penstock.control.fleet.start_turns import Turns
from penstock.engine.plan.flow import Flow, resolve_flow
from penstock.errors import NotFound, Problem
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace
from penstock.streams.kafka.cluster import Cluster
from penstock.streams.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pipeline(name: str = "test", **spec: Any) -> dict[str, Any]:
    """A pipeline document that generates and drops, unless told otherwise."""
    whole = {"source": {"type": "generate", "count": 10}, "sinks": [{"type": "drop"}], **spec}
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": whole}


def assign(flows: Flows, uid: str, worker: str) -> bool:
    """Give a flow to a worker as the coordinator does; false if another one has it."""
    return Dispatch(flows.registry).assign({uid: worker}) == 1


def unassigned(flows: Flows) -> list[str]:
    """The flows that wait for a worker."""
    return [flow.uid for flow in Dispatch(flows.registry).waiting()]


class Streams:
    """The streams of a test: logs in a directory, as an installation has them."""

    def __init__(self, root: Path, kafka: Cluster | None = None) -> None:
        self.home = StreamHome(root / "streams", root / "memory", kafka=kafka)
        self.specs: dict[str, StreamSpec] = {"test.dead": StreamSpec()}
        self.life = "life"

    def make(self, id: str, **spec: Any) -> Log:
        """A stream that exists from now on, or has other settings."""
        self.specs[id] = StreamSpec.model_validate(spec)
        return LOGS.log(self.place(id).directory)

    def place(self, id: str) -> StreamPlace:
        if id not in self.specs:
            raise NotFound(Problem(code="unknown_reference", message=f"there is no stream '{id}'"))
        return StreamPlace(id, self.specs[id], self.home.ensure(id, self.life, self.specs[id]))

    def site(self, flow: str = "pipeline:test", epoch: int = 1) -> Site:
        """Where a flow with these streams runs."""
        state = self.home.root / "state"
        return Site(flow, epoch, self.place, "test.in", dead="test.dead", state=state, policy=UNRESTRICTED)


NO_STREAMS = Streams(Path("/nonexistent")).site()

STATES = tempfile.TemporaryDirectory(prefix="penstock-flows-")


def flow_of(raw: dict[str, Any], site: Site = NO_STREAMS, **environment: str) -> Flow:
    """The flow of a document that refers to no other; without a site, its state is apart."""
    if site is NO_STREAMS:
        site = replace(site, state=Path(tempfile.mkdtemp(dir=STATES.name)))
    return resolve_flow(raw, lambda kind, name: None, site, environment=environment)


def keeper(
    spark: SparkSession,
    raw: dict[str, Any],
    checkpoint: Path,
    on_change: Callable[[State], None] | None = None,
    site: Site = NO_STREAMS,
    suspects: Turns | None = None,
) -> Keeper:
    """A flow that is about to start."""
    return Keeper(
        raw["metadata"]["name"],
        lambda: flow_of(raw, replace(site, state=checkpoint / "state")),
        spark,
        lambda plan: str(checkpoint / plan.flow.position_key),
        on_change=on_change or (lambda _: None),
        suspects=suspects,
    )


@contextmanager
def running(kept: Keeper) -> Iterator[Keeper]:
    """A flow without an end of its own, drained in the end."""
    kept.start()
    try:
        yield kept
    finally:
        kept.drain()
        kept.join(60)
        assert kept.ended


def run(spark: SparkSession, raw: dict[str, Any], checkpoint: Path, site: Site = NO_STREAMS) -> State:
    """Run a finite flow to its end."""
    kept = keeper(spark, raw, checkpoint, site=site)
    kept.start()
    kept.join(120)
    assert kept.ended, kept.state
    return kept.state


def letters(streams: Streams) -> list[dict[str, Any]]:
    """The dead letters of the flow: the event, and all that is told of it."""
    found = [
        row
        for chunk in LOGS.log(streams.place("test.dead").directory).read(0)
        if chunk.batch is not None
        for row in chunk.batch.to_pylist()
    ]
    return [{"event": row["value"].decode(), "key": row["_key"], **dict(row["_headers"])} for row in found]


def json_rows(directory: Path) -> list[dict[str, Any]]:
    """All events that a reader who walks the whole tree finds in files of JSON lines."""
    return [json.loads(line) for file in sorted(directory.rglob("*.json")) for line in file.open()]
