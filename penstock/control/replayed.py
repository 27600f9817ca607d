"""The document of a replay: the steps of a flow, from a range of its stream to the sinks that were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.control.registry.records import Record
from penstock.control.registry.store import Registry
from penstock.engine.flow import Flow
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.specs.documents import API_VERSION

Target = Literal["all"] | list[str] | Mapping[str, Any]
"""Who gets the events: all sinks of the flow, those with these ids, or a sink that is none of them."""

KEPT = ("processors", "tasks", "batch", "restart", "dead_letters")
"""What a replay has from the flow as it is."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Replayed:
    """A pipeline, still without a name, and the ids of the sinks that were chosen for it."""

    document: Json
    chosen: list[str]
    own: list[str]
    """Those of the flow itself."""


def replayed(
    record: Record, flow: Flow, stream: str, offsets: tuple[int, int], target: Target, registry: Registry
) -> Replayed:
    """A pipeline that does to a range of a stream what a flow does."""
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
        id = target.get("id") or _free("shadow", sinks)
        chosen = {id: {**target, "id": id}}
        if routes:
            made = _for_all(made, flow, registry, id)
    else:
        _require_known(target, sinks)
        chosen = {id: sinks[id] for id in target}
    # Steps that choose sinks by id need one of each: what is not wanted is dropped there.
    others = [id for id in sinks if id not in chosen] if routes else []
    dropped = [{"id": id, "type": "drop", "required": False} for id in others]
    made["sinks"] = [*chosen.values(), *dropped]
    return _replayed(made, list(chosen), [] if isinstance(target, Mapping) else list(chosen))


def _replayed(spec: Json, chosen: list[str], own: list[str]) -> Replayed:
    document = {"apiVersion": API_VERSION, "kind": "Pipeline", "spec": spec, "status": "active"}
    return Replayed(document, chosen, own)


def _source(flow: Flow, stream: str, offsets: tuple[int, int]) -> Json:
    first, next = offsets
    source = {"type": "stream", "stream": stream, "position": f"offset:{first}", "until": f"offset:{next}"}
    component = flow.source.component
    beside = {name: getattr(component, name) for name in ("metadata", "gap") if hasattr(component, name)}
    return {**source, **beside}


def _sinks(record: Record, flow: Flow) -> dict[str, Json]:
    """The sinks of a flow by id, as a pipeline writes them."""
    ids = [part.id for part in flow.sinks]
    if record.kind == "Task":
        outputs = [output["stream"] for output in record.document["spec"]["outputs"]]
        written: Sequence[Json] = [{"type": "stream", "stream": stream} for stream in outputs]
    else:
        written = record.document["spec"]["sinks"]
    return {id: {**entry, "id": id} for id, entry in zip(ids, written, strict=True)}


def _route(ids: list[str], conditions: list[str | None]) -> Json:
    """The conditions of a task's outputs as a step."""
    rules = [{"when": when or "true", "sinks": [id]} for id, when in zip(ids, conditions, strict=True)]
    return {"type": "route", "match": "all", "rules": rules, "default": "drop"}


def _for_all(spec: Json, flow: Flow, registry: Registry, shadow: str) -> Json:
    """A pipeline whose last step forgets which sinks were chosen: one that stands for all gets everything."""
    forget = {"type": "route", "rules": [{"when": "false", "sinks": [shadow]}], "default": "all"}
    steps = spec.get("processors") or []
    if spec.get("tasks"):
        documents = [registry.get("Task", task).document for task in spec["tasks"]]
        written = [step for document in documents for step in document["spec"]["processors"]]
        ids = [part.id for part in flow.processors]
        steps = [{**step, "id": id} for step, id in zip(written, ids, strict=True)]
    kept = {name: value for name, value in spec.items() if name != "tasks"}
    return {**kept, "processors": [*steps, forget]}


def _free(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _require_known(ids: Sequence[str], sinks: Mapping[str, Any]) -> None:
    problems = [
        Problem(
            code="unknown_sink",
            message=f"there is no sink '{id}'",
            path=f"sinks[{i}]",
            hint=did_you_mean(id, sinks),
        )
        for i, id in enumerate(ids)
        if id not in sinks
    ]
    if problems:
        raise Invalid(*problems)
