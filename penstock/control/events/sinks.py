"""The sinks of a flow: progress and missed batches of each, and catching up."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.connectors.base import Guarantee
from penstock.control.documents.flow_states import flow_of
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_directory
from penstock.control.graph.flow_ends import SinkEnd, input_stream, sink_ends
from penstock.control.registry.records import JsonObject, Record
from penstock.engine.delivery.sink_states import Standing, State, read_standings
from penstock.engine.plan.flow import Lookup
from penstock.errors import Conflict, NotFound, Problem, did_you_mean
from penstock.specs.catalog import catalog


@dataclass(frozen=True)
class SinkStanding:
    """A sink of a flow, and its state."""

    id: str
    type: str
    path: str
    """The path of the sink in the document."""
    guarantee: Guarantee
    required: bool
    state: State
    lag: int | None
    """Number of events that the sink has not received yet; None if unknown."""
    standing: Standing


def sinks_of(service: Service, kind: str, name: str) -> list[SinkStanding]:
    """The states of a flow's sinks, from its ledger, also while the flow is not running."""
    record = service.registry.get(kind, name)
    runs = flow_of(record).phase in ("running", "draining")
    declared = sink_ends(record.document, _lookup(service))
    ids = [sink.id for sink in declared]
    keeper = service.keeper_of(record)
    if keeper is None:
        found = read_standings(flow_directory(service.settings, record), ids)
    else:
        found = service.rpc.files(keeper).standings(kind, record.id, ids)
    end = _end(service, record) if keeper is None else None
    return [_shown(sink, found[sink.id], end, runs) for sink in declared]


def catch_up(service: Service, kind: str, name: str, sink: str) -> SinkStanding:
    """Make a sink that is behind retry now; Conflict if its flow is not running.

    A completed flow is started: it delivers the batches that the sink has missed, and completes again.
    """
    record = service.registry.get(kind, name)
    flow, known = flow_of(record), {each.id: each for each in sinks_of(service, kind, name)}
    title = f"{kind.lower()} '{record.name}'"
    if sink not in known:
        message = f"{title} has no sink '{sink}'"
        raise NotFound(Problem(code="not_found", message=message, hint=did_you_mean(sink, known)))
    missed = any(gap.kept != "lost" for gap in known[sink].standing.gaps)
    if flow.status == "completed":
        if missed:
            service.act(kind, name, "start")
        return known[sink]
    worker = next((each for each in service.flows.workers() if each.id == flow.worker), None)
    if flow.status != "active" or worker is None or not service.rpc.catch_up(worker, record.uid, sink):
        hint = {"active": "wait until it runs", "paused": "resume it"}.get(flow.status, "start it")
        message = f"{title} is not running ({flow.status}, {flow.phase}), so nothing can be delivered"
        raise Conflict(
            Problem(
                code="not_running", message=message, hint=f"{hint}: the sink then catches up automatically"
            )
        )
    return known[sink]


def state_of(state: State, runs: bool) -> State:
    """The state of a sink: `behind` instead of `catching_up` while its flow is not running."""
    return "behind" if state == "catching_up" and not runs else state


def _shown(sink: SinkEnd, found: Standing, end: int | None, runs: bool) -> SinkStanding:
    known = catalog("sink").classes.get(sink.type)
    guarantee: Guarantee = getattr(known, "guarantee", "at-least-once") if known else "at-least-once"
    lag: int | None = sum(gap.events or 0 for gap in found.gaps if gap.kept != "lost")
    if end is not None:
        lag = None if found.cursor is None else max(0, end - found.cursor)
    state = state_of(found.state, runs)
    return SinkStanding(sink.id, sink.type, sink.path, guarantee, sink.required, state, lag, found)


def _lookup(service: Service) -> Lookup:
    def document(kind: str, document_id: str) -> JsonObject | None:
        record = service.registry.find(kind, document_id)
        return record.document if record else None

    return document


def _end(service: Service, record: Record) -> int | None:
    """The end offset of the stream that a flow reads; None if it reads no stream."""
    stream = input_stream(record.document, record.id, _lookup(service))
    try:
        return service.streams.log(stream).bounds().next if stream else None
    except NotFound:
        return None
