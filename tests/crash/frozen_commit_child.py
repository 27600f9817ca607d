"""A worker with a real flow that freezes, with its JVM, right before a commit; see test_frozen.py."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from penstock.connectors.file.storage import LocalStorage
from penstock.engine.runtime.run import Run
from penstock.engine.runtime.session import open_session
from penstock.settings import load
from tests.engine.faults import wait_for
from tests.flows import Streams, keeper, pipeline
from tests.java import CACHE

EVENTS, BATCH, FROZEN = 30, 10, 1
"""FROZEN is the number of the batch whose commit waits."""


def streams_of(root: Path) -> Streams:
    streams = Streams(root)
    streams.make("in", schema="id BIGINT")
    return streams


def document(root: Path) -> dict[str, Any]:
    return pipeline(
        source={"type": "stream", "stream": "in", "until": "latest"},
        sinks=[{"id": "out", "type": "file", "path": str(root / "out"), "format": "json", "retries": 0}],
        batch={"max_events": BATCH, "max_inflight": 1, "max_ms": 10},
    )


def freeze() -> None:
    """Stop this process and its JVM until somebody lets them go on."""
    os.killpg(os.getpgid(0), signal.SIGSTOP)


def freeze_before_sink() -> None:
    """Freeze when the files of a batch are complete, after the last check of the lease."""
    publish = LocalStorage.publish

    def frozen(storage: LocalStorage, source: str, target: str) -> None:
        if target.endswith(f"-{FROZEN:010d}"):
            freeze()
        publish(storage, source, target)

    LocalStorage.publish = frozen  # type: ignore[method-assign]


def freeze_before_checkpoint() -> None:
    """Freeze when all sinks have a batch, before Spark commits it."""
    deliver = Run._deliver

    def frozen(run: Run, df: Any, batch_id: int) -> None:
        deliver(run, df, batch_id)
        if batch_id == FROZEN:
            freeze()

    Run._deliver = frozen  # type: ignore[method-assign]


def main(root: Path, place: str) -> None:
    {"sink": freeze_before_sink, "checkpoint": freeze_before_checkpoint}[place]()
    overrides = {"home": root / "home", "cache": CACHE, "spark.master": "local[2]", "spark.ui.enabled": False}
    spark = open_session(load(overrides, env={}, cwd=root).settings)
    kept = keeper(spark, document(root), root / "flow", site=streams_of(root).site(epoch=1))
    kept.start()
    wait_for("a failure", lambda: kept.state.error or kept.ended)
    print(json.dumps(kept.state.error), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
