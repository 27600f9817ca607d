"""Flows in tests, run as in a worker, without a server or registry."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.control.fleet.lifecycle import Keeper, State
from penstock.control.streams.logs import input_spec
from penstock.engine.plan.flow import Flow, resolve_flow
from penstock.errors import NotFound, Problem
from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from penstock.specs.documents import PipelineBuffer
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome, StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120.0
"""Seconds that a test waits before it fails."""

DEAD = "letters"
"""The stream of dead letters."""


@dataclass
class Bench:
    """A directory in which a flow runs, repeatedly if necessary, with its streams and its progress."""

    spark: SparkSession
    root: Path
    streams: dict[str, StreamSpec] = field(default_factory=lambda: {DEAD: StreamSpec()})
    home: Path | None = None
    """The directory of the streams; None: `root`."""
    name: str = "suite"
    """The name of the pipeline, and of its reader in streams."""
    processors: Sequence[Mapping[str, Any]] = ()
    """Steps of each pipeline, before the steps of its spec."""

    def part(self, name: str) -> Bench:
        """A bench for another pipeline with the same streams."""
        home = self.home or self.root
        return Bench(self.spark, self.root / name, self.streams, home, name, self.processors)

    def run(self, source: Mapping[str, Any], sink: Mapping[str, Any], **spec: Any) -> State:
        """Run a pipeline to its end: the source must be finite, or the pipeline must fail."""
        kept = self.keeper(source, sink, **spec)
        kept.start()
        kept.join(PATIENCE_S)
        assert kept.ended, f"the pipeline has not ended: {kept.state}"
        return kept.state

    @contextmanager
    def running(self, source: Mapping[str, Any], sink: Mapping[str, Any], **spec: Any) -> Iterator[Keeper]:
        """A pipeline that runs inside the context, and is drained at the end."""
        kept = self.keeper(source, sink, **spec)
        kept.start()
        try:
            yield kept
        finally:
            kept.drain()
            kept.join(PATIENCE_S)
            assert kept.ended, "the pipeline does not end"

    def keeper(
        self,
        source: Mapping[str, Any],
        sink: Mapping[str, Any],
        change: Callable[[Flow], Flow] = lambda flow: flow,
        **spec: Any,
    ) -> Keeper:
        """A pipeline, not yet started, that resumes where the last one ended; `change` may replace parts."""
        document: dict[str, Any] = {
            "kind": "Pipeline",
            "metadata": {"name": self.name},
            "spec": {"source": dict(source), "sinks": [dict(sink)], **spec},
        }
        if self.processors:
            steps = [dict(step) for step in [*self.processors, *spec.get("processors", ())]]
            document["spec"]["processors"] = steps

        def resolved() -> Flow:
            flow = resolve_flow(document, lambda kind, name: None, self.site)
            return change(self._with_input(flow, spec.get("buffer")))

        return Keeper(
            self.name,
            resolved,
            self.spark,
            lambda plan: str(self.root / "checkpoint" / plan.flow.position_key),
        )

    def _with_input(self, flow: Flow, buffer: Mapping[str, Any] | None) -> Flow:
        """The flow with the inferred columns of its source, and with its input stream if it needs one."""
        if not flow.source.component.held:
            return flow
        source = flow.source.component.pinned(self.spark, self.site)
        schema = source.input_schema(source.model_dump(by_alias=True))
        given = None if buffer is None else PipelineBuffer.model_validate(buffer)
        self.streams[self.site.input] = input_spec(given, schema)
        return replace(flow, source=replace(flow.source, component=source))

    @property
    def site(self) -> Site:
        """The site of the flows of this bench."""
        root = self.home or self.root
        home = StreamHome(root / "streams", root / "memory")

        def place(name: str) -> StreamPlace:
            if name not in self.streams:
                raise NotFound(Problem(code="unknown_reference", message=f"there is no stream '{name}'"))
            return StreamPlace(name, self.streams[name], home.ensure(name, "suite", self.streams[name]))

        return Site(
            f"pipeline:{self.name}",
            1,
            place,
            f"{self.name}.in",
            dead=DEAD,
            state=self.root / "state",
            policy=UNRESTRICTED,
        )

    def stream(self, name: str) -> list[dict[str, Any]]:
        """The events of a stream, with `_key` and `_headers`."""
        self.streams.setdefault(name, StreamSpec())
        chunks = LOGS.log(self.site.stream(name).directory).read(0)
        return [row for chunk in chunks if chunk.batch is not None for row in chunk.batch.to_pylist()]

    def letters(self) -> list[dict[str, Any]]:
        """The dead letters: `code`, `reason` and the other headers, and the event as `event`."""
        return [
            {"event": row["value"].decode(), "key": row["_key"], **dict(row["_headers"])}
            for row in self.stream(DEAD)
        ]


def files(directory: Path) -> list[dict[str, Any]]:
    """The events in files of JSON lines that a `file` sink has written."""
    return [json.loads(line) for file in sorted(directory.rglob("*.json")) for line in file.open()]


def to_files(directory: Path) -> dict[str, Any]:
    """A sink whose output can be read with `files`."""
    return {"type": "file", "path": str(directory), "format": "json"}


def wait_until(what: str, ready: Callable[[], Any], seconds: float = PATIENCE_S) -> None:
    """Wait for a condition; fails if it does not become true in time."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(0.05)
