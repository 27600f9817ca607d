"""A process with three cores for Spark, in which three batches have to meet one another."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from penstock.engine.plan.flow import Flow, Part, Place
from penstock.engine.runtime.session import open_session
from penstock.processors.base import BatchProcessor, Desk, Outcome, Stage, Work
from penstock.settings import load
from tests.engine.faults import Faulty, numbers, wait_for
from tests.flows import Streams, running
from tests.java import CACHE

PATIENCE_S = 100


class Meeting(BatchProcessor):
    """Lets a batch pass when two others are being processed."""

    type: Literal["meeting"] = "meeting"
    directory: str

    def output(self, schema: Any, stage: Stage) -> Any:
        return schema

    def open(self, desk: Desk) -> Work:
        return self.meet

    def meet(self, batch: pa.RecordBatch) -> Outcome:
        ids = batch.column("id").to_pylist()
        (Path(self.directory) / f"{ids[0]}-{ids[-1] + 1}").touch()
        deadline = time.monotonic() + PATIENCE_S
        while len(list(Path(self.directory).iterdir())) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        return Outcome(batch if time.monotonic() < deadline else batch.slice(0, 0))


class AtOnce(Faulty):
    """A flow with that step."""

    def flow(self, scripts: Any) -> Flow:
        (self.root / "met").mkdir(exist_ok=True)
        step = Part("meeting", Meeting(directory=str(self.root / "met")), Place("spec.processors[0]"))
        return replace(super().flow(scripts), processors=[step])


def main(root: Path) -> None:
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[3]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    streams = Streams(root)
    streams.make("in", schema="id BIGINT").append(numbers(0, 30))
    spec = {
        "source": {"type": "stream", "stream": "in"},
        "batch": {"max_events": 10, "max_inflight": 3, "max_ms": 10},
    }
    flow = AtOnce(root, {"lake": {"deadline_ms": 200_000}}, streams.site(), spec)
    with running(flow.keeper(spark)):
        wait_for("all", lambda: flow.ids("lake"), 200)
    assert flow.ids("lake") == list(range(30))
    print(*(path.name for path in (root / "met").iterdir()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
