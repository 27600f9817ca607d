"""The sinks of a flow one by one: how far each has come, what it has missed, and letting it catch up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connectors.base import Guarantee
from penstock.control.registry.records import Record
from penstock.control.service import Service, flow_of
from penstock.control.state import flow_directory
from penstock.control.streams import input_id
from penstock.engine.flow import output_ids
from penstock.engine.standings import Standing, State, read_standings
from penstock.errors import Conflict, NotFound, Problem, did_you_mean
from penstock.specs.catalog import catalog
from penstock.specs.references import publishes_to


@dataclass(frozen=True)
class SinkStanding:
    """A sink of a flow, and how it is."""

    id: str
    type: str
    guarantee: Guarantee
    required: bool
    state: State
    lag: int | None
    """Events that the source has or that are kept, and the sink has not got; None if nobody can tell."""
    standing: Standing


def sinks_of(service: Service, kind: str, name: str) -> list[SinkStanding]:
    """How the sinks of a flow are. The ledger tells it, also while the flow rests."""
    record = service.registry.get(kind, name)
    runs = flow_of(record).phase in ("running", "draining")
    declared = list(_declared(service, record))
    found = read_standings(flow_directory(service.settings, record), [id for id, _, _ in declared])
    end = _end(service, record)
    return [_shown(id, type, required, found[id], end, runs) for id, type, required in declared]


def catch_up(service: Service, kind: str, name: str, sink: str) -> SinkStanding:
    """Let a sink that is behind try again now; Conflict if its flow does not run."""
    record = service.registry.get(kind, name)
    flow, known = flow_of(record), {each.id: each for each in sinks_of(service, kind, name)}
    title = f"{kind.lower()} '{record.name}'"
    if sink not in known:
        message = f"{title} has no sink '{sink}'"
        raise NotFound(Problem(code="not_found", message=message, hint=did_you_mean(sink, known)))
    worker = next((each for each in service.flows.workers() if each.id == flow.worker), None)
    if flow.status != "active" or worker is None or not service.rpc.catch_up(worker, record.uid, sink):
        hint = {"active": "wait until it runs", "paused": "resume it"}.get(flow.status, "start it")
        message = f"{title} does not run ({flow.status}, {flow.phase}), so nothing can be delivered"
        raise Conflict(
            Problem(code="not_running", message=message, hint=f"{hint}: then it catches up by itself")
        )
    return known[sink]


def _declared(service: Service, record: Record) -> Iterator[tuple[str, str, bool]]:
    """Id and type of each sink, and whether it is required."""
    spec: Mapping[str, Any] = record.document.get("spec") or {}
    if record.kind == "Task":
        for id in output_ids([output["stream"] for output in spec["outputs"]]):
            yield id, "stream", True
    else:
        for sink in _mappings(spec.get("sinks")):
            ref, type = sink.get("ref"), sink.get("type")
            if ref is not None:
                referred = service.registry.find("Sink", str(ref))
                type = (referred.document["spec"] if referred else {}).get("type")
            yield str(sink.get("id") or ref or type), str(type), sink.get("required") is not False


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    """The entries of a list that are mappings: what rests may have a spec that is not valid."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _shown(id: str, type: str, required: bool, found: Standing, end: int | None, runs: bool) -> SinkStanding:
    sink = catalog("sink").classes.get(type)
    guarantee: Guarantee = getattr(sink, "guarantee", "at-least-once") if sink else "at-least-once"
    state: State = "behind" if found.state == "catching_up" and not runs else found.state
    lag: int | None = sum(gap.events or 0 for gap in found.gaps if gap.kept != "lost")
    if end is not None:
        lag = None if found.cursor is None else max(0, end - found.cursor)
    return SinkStanding(id, type, guarantee, required, state, lag, found)


def _end(service: Service, record: Record) -> int | None:
    """Where the stream ends that a flow reads; None if it reads none."""
    stream = _input(service, record)
    try:
        return service.streams.log(stream).bounds().next if stream else None
    except NotFound:
        return None


def _input(service: Service, record: Record) -> str | None:
    spec: Mapping[str, Any] = record.document.get("spec") or {}
    if record.kind == "Task":
        return str(spec["input"])
    source, document = spec.get("source"), None
    if isinstance(source, Mapping) and source.get("ref") is not None:
        referred = service.registry.find("Source", str(source["ref"]))
        document = referred.document if referred else {}
        source = document.get("spec")
    if not isinstance(source, Mapping):
        return None
    if source.get("type") == "stream":
        return str(source.get("stream"))
    if getattr(catalog("source").classes.get(str(source.get("type"))), "push", False):
        return (publishes_to(document) if document else None) or input_id(record.id)
    return None
