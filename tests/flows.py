"""Running flows in tests: the same way a worker does, without a registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.control.lifecycle import Keeper, State
from penstock.engine.flow import Flow, resolve_flow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pipeline(name: str = "test", **spec: Any) -> dict[str, Any]:
    """A pipeline document that generates and drops, unless told otherwise."""
    whole = {"source": {"type": "generate", "count": 10}, "sinks": [{"type": "drop"}], **spec}
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": whole}


def flow_of(raw: dict[str, Any], **environment: str) -> Flow:
    """The flow of a document that refers to no other."""
    return resolve_flow(raw, lambda kind, name: None, environment=environment)


def keeper(
    spark: SparkSession,
    raw: dict[str, Any],
    checkpoint: Path,
    on_change: Callable[[State], None] | None = None,
) -> Keeper:
    """A flow that is about to start."""
    return Keeper(
        raw["metadata"]["name"],
        lambda: flow_of(raw),
        spark,
        lambda flow: str(checkpoint / flow.position_key),
        on_change=on_change or (lambda _: None),
    )


def run(spark: SparkSession, raw: dict[str, Any], checkpoint: Path) -> State:
    """Run a finite flow to its end."""
    kept = keeper(spark, raw, checkpoint)
    kept.start()
    kept.join(120)
    assert kept.ended, kept.state
    return kept.state


def json_rows(directory: Path) -> list[dict[str, Any]]:
    """All events that a reader who walks the whole tree finds in files of JSON lines."""
    return [json.loads(line) for file in sorted(directory.rglob("*.json")) for line in file.open()]
