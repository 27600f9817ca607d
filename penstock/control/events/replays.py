"""Replays: a range of a flow's stream, processed again.

A replay is a pipeline with an end position. It reads the same stream with a separate cursor, so the flow
itself continues, and it can be paused, monitored and deleted like any pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from penstock.control.documents.edits import Planner
from penstock.control.documents.service import Service
from penstock.control.events.replay_document import Replayed, Target, replayed
from penstock.control.fleet.progress import flow_name
from penstock.control.registry.records import Record
from penstock.engine.plan.flow import Flow
from penstock.errors import Conflict, Invalid, Problem
from penstock.frames.streams.cursors import cursor_in
from penstock.plurals import plural
from penstock.specs.documents import derive_id
from penstock.specs.positions import Position, parse_position
from penstock.specs.validation import parse
from penstock.streams.home import StreamPlace
from penstock.streams.log import Log

LABEL = "replay_of"
"""The label that names the flow that a pipeline replays."""


@dataclass(frozen=True)
class Order:
    """The range to replay, and the sinks to replay it to."""

    begin: str
    end: str | None = None
    sinks: Target = "all"
    name: str | None = None


@dataclass(frozen=True)
class Range:
    """Events of a stream: offsets `first` to `next`, the latter exclusive."""

    stream: str
    first: int
    next: int
    events: int
    """The number of readable events in the range."""
    bytes: int
    first_time: datetime | None
    last_time: datetime | None


@dataclass(frozen=True)
class Ending:
    """A sink that gets the events of a replay."""

    id: str
    type: str
    guarantee: str
    again: bool
    """Whether the flow itself has delivered, or will deliver, the same events to this sink."""


@dataclass(frozen=True)
class Replay:
    """A replay, and its progress."""

    record: Record
    stream: str
    first: int
    next: int
    delivered: int

    @property
    def total(self) -> int:
        """The number of offsets in the range of the replay."""
        return self.next - self.first


@dataclass(frozen=True)
class Planned:
    """The plan of a replay."""

    range: Range
    sinks: list[Ending]
    warnings: list[Problem] = field(default_factory=list)
    replay: Replay | None = None


class Replays:
    """Starts and finds replays."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._planner = Planner(service.settings, service.registry, service.streams)

    def start(self, kind: str, name: str, order: Order, *, dry_run: bool) -> Planned:
        """Replay a range of the stream that a flow reads; with `dry_run` only plan it."""
        record = self._service.get(kind, name)
        flow, place = self._read(record)
        found = self._range(place, order)
        offsets = (found.first, found.next)
        made = replayed(record, flow, place.id, offsets, order.sinks, self._service.registry)
        made.document["metadata"] = {
            "name": order.name or self._next_name(record),
            "description": f"Replay of {kind.lower()} '{record.name}'.",
            "labels": {LABEL: _of(record)},
        }
        planned = Planned(found, self._endings(record, made), self._warnings(place, order, found))
        if dry_run:
            return planned
        saved = self._service.create("Pipeline", made.document)
        replay = Replay(saved.record, place.id, found.first, found.next, 0)
        return Planned(planned.range, planned.sinks, [*planned.warnings, *saved.warnings], replay)

    def of(self, kind: str, name: str) -> list[Replay]:
        """The replays of a flow, newest first."""
        record = self._service.get(kind, name)
        found = self._service.list("Pipeline", label=[f"{LABEL}={_of(record)}"], sort="-created", limit=None)
        return [replay for each in found.items if (replay := self._progress(each)) is not None]

    def _progress(self, record: Record) -> Replay | None:
        """The progress of a replay; None if its document is no longer that of a replay."""
        source = (record.document.get("spec") or {}).get("source") or {}
        try:
            first, end = (parse_position(source[name]).offset for name in ("position", "until"))
            log = self._service.streams.log(source["stream"])
        except (KeyError, ValueError, TypeError, Invalid):
            return None
        if first is None or end is None:
            return None
        cursor = cursor_in(log, flow_name(record))
        at = first if cursor is None else min(max(cursor.next, first), end)
        return Replay(record, source["stream"], first, end, at - first)

    def _read(self, record: Record) -> tuple[Flow, StreamPlace]:
        """A flow and the stream that it reads; Conflict if it reads no stream."""
        flow = self._planner.resolve(record)
        place = flow.source.component.reads(flow.site) if flow and flow.sinks else None
        if flow is None or place is None:
            what = f"{record.kind.lower()} '{record.name}'"
            message = f"{what} reads no stream" if flow else f"{what} is not valid or doesn't run"
            hint = "publish its source to a stream first, and read that stream"
            raise Conflict(Problem(code="not_replayable", message=message, hint=hint))
        return flow, place

    def _range(self, place: StreamPlace, order: Order) -> Range:
        log = self._service.streams.log_at(place.directory)
        bounds = log.bounds()
        begin = parse_position(order.begin)
        first = log.resolve(begin)
        end = bounds.next if order.end is None else log.resolve(parse_position(order.end))
        stop = min(end, bounds.next)
        if begin.kind == "offset" and first < bounds.first:
            raise Conflict(_gone(place, first, min(stop, bounds.first), bounds.first))
        if first >= stop:
            message = f"stream '{place.id}' has no events from {order.begin} to {order.end or 'its end'}"
            hint = (
                f"it holds offsets {bounds.first} to {bounds.next - 1}"
                if bounds.first < bounds.next
                else None
            )
            raise Conflict(Problem(code="empty_range", message=message, path="from", hint=hint))
        return _measured(log, place.id, first, stop)

    def _warnings(self, place: StreamPlace, order: Order, found: Range) -> list[Problem]:
        warnings = []
        lost = found.next - found.first - found.events
        if lost:
            message = f"{plural(lost, 'event')} of the range can no longer be read"
            warnings.append(Problem(code="gap", message=message, path="from"))
        begin, log = parse_position(order.begin), self._service.streams.log_at(place.directory)
        if _may_miss(begin, log, found):
            message = (
                f"events before offset {found.first} were removed, and some may be in the requested time "
                "range"
            )
            warnings.append(Problem(code="gap", message=message, path="from"))
        return warnings

    def _endings(self, record: Record, made: Replayed) -> list[Ending]:
        """The chosen sinks; Invalid if one of them, or the name, is not valid."""
        parse(made.document, self._service.settings.defaults.model_dump(), self._service.registry.ids)
        flow = self._planner.resolve(record, made.document)
        return [
            Ending(
                part.id,
                part.component.type,  # type: ignore[attr-defined]
                part.component.guarantee,
                again=part.id in made.own,
            )
            for part in (flow.sinks if flow else ())
            if part.id in made.chosen
        ]

    def _next_name(self, record: Record) -> str:
        taken, number = self._service.registry.ids("Pipeline"), 1
        base = record.name if record.kind == "Pipeline" else f"{record.kind.lower()} {record.name}"
        while derive_id(f"{base} replay {number}") in taken:
            number += 1
        return f"{base} replay {number}"


def _of(record: Record) -> str:
    return record.id if record.kind == "Pipeline" else f"{record.kind.lower()}/{record.id}"


def _measured(log: Log, stream: str, first: int, stop: int) -> Range:
    """The size and times of a range, from the headers of its frames."""
    events, size, times = 0, 0.0, []
    for span in log.storage.spans(first):
        if span.base >= stop:
            break
        count = min(span.next, stop) - max(span.base, first)
        if span.lost is None:
            events += count
            size += span.raw_bytes * count / (span.next - span.base)
            times.append(span.time_us)
    begin, end = (_moment(times[0]), _moment(times[-1])) if times else (None, None)
    return Range(stream, first, stop, events, round(size), begin, end)


def _may_miss(begin: Position, log: Log, found: Range) -> bool:
    """Whether events at the start of a time range may have been removed from the stream."""
    if begin.kind != "time" or begin.time is None or found.first > log.bounds().first or found.first == 0:
        return False
    return found.first_time is None or begin.time < found.first_time


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1e6, UTC)


def _gone(place: StreamPlace, first: int, stop: int, oldest: int) -> Problem:
    kept = "" if place.spec.wal.enabled else ", which holds events in memory only"
    return Problem(
        code="range_gone",
        message=f"offsets {first} to {stop - 1} of stream '{place.id}'{kept}, were removed",
        path="from",
        hint=f"the first available event is at offset:{oldest}, or use earliest",
    )
