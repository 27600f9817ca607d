"""The document of a replay: the steps of a flow, from a range of its stream to the chosen sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.control.registry.records import Record
from penstock.control.registry.store import Registry
from penstock.engine.plan.flow import Flow
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.specs.documents import API_VERSION

Target = Literal["all"] | list[str] | Mapping[str, Any]
"""The sinks of a replay: all sinks of the flow, sinks with the given ids, or a separate sink."""

KEPT = ("processors", "tasks", "batch", "restart", "placement", "dead_letters")
"""Fields of the spec that a replay copies from the flow."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Replayed:
    """A pipeline without a name yet, and the ids of its chosen sinks."""

    document: Json
    chosen: list[str]
    own: list[str]
    """The chosen sinks that belong to the flow itself."""


def replayed(
    record: Record, flow: Flow, stream: str, offsets: tuple[int, int], target: Target, registry: Registry
) -> Replayed:
    """A pipeline that runs the steps of a flow on a range of a stream."""
    spec = record.document["spec"]
    made: Json = {"source": _source(flow, stream, offsets)}
    made |= {name: spec[name] for name in KEPT if name in spec}
    sinks = _sinks(record, flow)
    conditions = [part.when for part in flow.sinks]
    routes = any(conditions) or any(part.component.routes for part in flow.processors)
    if any(conditions):
        made["processors"] = [*made["processors"], _route(list(sinks), conditions)]
    if target == "all":
        made["sinks"] = list(sinks.values())
        if "commit_policy" in spec:
            made["commit_policy"] = spec["commit_policy"]
        return _replayed(made, list(sinks), list(sinks))
    made["commit_policy"] = {"mode": "all"}
    if isinstance(target, Mapping):
        sink = target.get("id") or _free("shadow", sinks)
        chosen = {sink: {**target, "id": sink}}
        if routes:
            made = _for_all(made, flow, registry, sink)
    else:
        _require_known(target, sinks)
        chosen = {sink: sinks[sink] for sink in target}
    # Steps that choose sinks by id need all of them: the others become drop sinks.
    others = [sink for sink in sinks if sink not in chosen] if routes else []
    dropped = [{"id": sink, "type": "drop", "required": False} for sink in others]
    made["sinks"] = [*chosen.values(), *dropped]
    return _replayed(made, list(chosen), [] if isinstance(target, Mapping) else list(chosen))


def _replayed(spec: Json, chosen: list[str], own: list[str]) -> Replayed:
    document = {"apiVersion": API_VERSION, "kind": "Pipeline", "spec": spec, "status": "active"}
    return Replayed(document, chosen, own)


def _source(flow: Flow, stream: str, offsets: tuple[int, int]) -> Json:
    first, end = offsets
    source = {"type": "stream", "stream": stream, "position": f"offset:{first}", "until": f"offset:{end}"}
    component = flow.source.component
    beside = {name: getattr(component, name) for name in ("metadata", "gap") if hasattr(component, name)}
    return {**source, **beside}


def _sinks(record: Record, flow: Flow) -> dict[str, Json]:
    """The sinks of a flow by id, as entries of a pipeline."""
    ids = [part.id for part in flow.sinks]
    if record.kind == "Task":
        outputs = [output["stream"] for output in record.document["spec"]["outputs"]]
        written: Sequence[Json] = [{"type": "stream", "stream": stream} for stream in outputs]
    else:
        written = record.document["spec"]["sinks"]
    return {sink: {**entry, "id": sink} for sink, entry in zip(ids, written, strict=True)}


def _route(ids: list[str], conditions: list[str | None]) -> Json:
    """The conditions of a task's outputs as a step."""
    rules = [{"when": when or "true", "sinks": [sink]} for sink, when in zip(ids, conditions, strict=True)]
    return {"type": "route", "match": "all", "rules": rules, "default": "drop"}


def _for_all(spec: Json, flow: Flow, registry: Registry, shadow: str) -> Json:
    """A pipeline whose last step clears the routing, so that one sink gets the events of all sinks."""
    forget = {"type": "route", "rules": [{"when": "false", "sinks": [shadow]}], "default": "all"}
    steps = spec.get("processors") or []
    if spec.get("tasks"):
        documents = [registry.get("Task", task).document for task in spec["tasks"]]
        written = [step for document in documents for step in document["spec"]["processors"]]
        ids = [part.id for part in flow.processors]
        steps = [{**step, "id": step_id} for step, step_id in zip(written, ids, strict=True)]
    kept = {name: value for name, value in spec.items() if name != "tasks"}
    return {**kept, "processors": [*steps, forget]}


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _require_known(ids: Sequence[str], sinks: Mapping[str, Any]) -> None:
    problems = [
        Problem(
            code="unknown_sink",
            message=f"there is no sink '{sink}'",
            path=f"sinks[{i}]",
            hint=did_you_mean(sink, sinks),
        )
        for i, sink in enumerate(ids)
        if sink not in sinks
    ]
    if problems:
        raise Invalid(*problems)
