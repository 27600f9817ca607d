"""Rules for the latency goal of a document: the settings it replaces, and those it can't be combined with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import Problem
from penstock.specs.catalog import catalog
from penstock.specs.documents import runs
from penstock.specs.policies import THRESHOLDS

PATH = "spec.latency"
CODE = "latency_unavailable"


def latency_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """The problems of a latency goal that can be found in the document itself."""
    spec = raw["spec"]
    if spec.get("latency") is None or raw.get("kind") == "Source":  # for a Source it is an unknown field
        return
    batch = spec.get("batch")
    for name in sorted(THRESHOLDS & batch.keys()) if isinstance(batch, Mapping) else ():
        yield Problem(
            code="exclusive_fields",
            message=f"'latency' and 'batch.{name}' can't be combined: the latency goal determines the "
            "thresholds of a batch",
            path=f"spec.batch.{name}",
            hint="keep one of the two",
        )
    source = spec.get("source")
    kind = source.get("type") if isinstance(source, Mapping) else None
    if isinstance(kind, str) and not getattr(catalog("source").classes.get(kind), "paced", True):
        yield unable_source(kind)
    if not runs(raw):
        where = "input' and 'outputs" if raw["kind"] == "Task" else "stream"
        yield Problem(
            code=CODE,
            message=f"'latency' needs a {raw['kind'].lower()} that runs on its own",
            path=PATH,
            hint=f"add '{where}', or set the latency in the pipeline that uses it",
        )


def unable_source(kind: str) -> Problem:
    """The problem for a latency goal with a source whose micro-batches Penstock does not plan."""
    able = sorted(name for name, found in catalog("source").classes.items() if getattr(found, "paced", False))
    return Problem(
        code=CODE,
        message=f"'latency' isn't available for a source of type '{kind}': its events have no arrival time",
        path=PATH,
        hint=f"use a source of type {' or '.join(able)}, or set the thresholds of 'batch'",
    )


def second_stream(step: str) -> Problem:
    """The problem of a latency goal with a step that reads a second stream."""
    return Problem(
        code=CODE,
        message=f"'latency' isn't available with step '{step}', which reads a second stream",
        path=PATH,
        hint="leave out 'latency', and set the thresholds of 'batch'",
    )


def without_rivals(defaults: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a kind without those that the document's `latency` or thresholds replace."""
    kept = dict(defaults)
    batch = spec.get("batch")
    if spec.get("latency") is not None and isinstance(kept.get("batch"), Mapping):
        kept["batch"] = {name: value for name, value in kept["batch"].items() if name not in THRESHOLDS}
    if isinstance(batch, Mapping) and THRESHOLDS & batch.keys() and spec.get("latency") is None:
        kept.pop("latency", None)
    return kept
