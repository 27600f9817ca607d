"""Inspecting streams: pages of events, following new events, statistics and readers."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.feed import Feed
from penstock.api.ingest import StreamName
from penstock.api.sse import EventStream, described
from penstock.api.tail import Tails
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.fleet.progress import flow_name
from penstock.control.streams.doors import Doors
from penstock.control.streams.pages import EventPage, range_of, read_page, start_of, stats_of
from penstock.control.streams.search import MOST as SEARCHED
from penstock.control.streams.search import MOST_S as SEARCHED_S
from penstock.control.streams.search import Search, condition_of, search, search_back
from penstock.errors import Conflict, Invalid, NotFound, Problem, did_you_mean
from penstock.specs.documents import RUNNABLE
from penstock.specs.positions import LAST_OFFSET, PositionText, parse_position

FEW, MOST = 100, 10_000

_POSITION = "Start position: `earliest`, `latest`, `offset:N` or `time:` and a time in ISO 8601."

_EVENTS = f"""\
Events from a position on, or the most recent ones before `to`. With `where`, those that meet a condition.
One request searches up to {SEARCHED:,} events and takes up to {SEARCHED_S:g} seconds: while `next` is before
`end`, continue with `position=offset:NEXT`, or with `last` and `to=offset:FIRST` to search backward."""

_WHERE = """\
Only events that meet a condition, such as `amount > 100 AND customer LIKE 'a%'`: comparisons, `IN`,
`LIKE`, `ILIKE`, `BETWEEN`, `IS NULL`, `AND`, `OR`, `NOT`. Fields are the columns of a typed stream, or
`value`, `key` and `headers` of a raw stream, where `value.name` is a field of JSON; and `_offset`, `_time`,
`_key`, `_headers`."""

_TAIL = """\
Events as they arrive. Each message `events` has a list of events as data and, as its id, the offset after
them, at which a reconnecting client continues (`Last-Event-ID`). A message `gap` with `{first, next,
reason}` reports offsets whose events are no longer available. A slow client receives events later, but
never delays retention: events removed in the meantime are a gap. A client that reads nothing for
`limits.send_ms` is disconnected; at most `limits.followers` clients can follow at a time."""


class AnyEvent(View):
    """The fields that every event has."""

    offset: int
    time: datetime = Field(description="When it was appended.")
    key: Any = Field(description="Text, or `{base64}` if it is not UTF-8; null if it has none.")
    headers: dict[str, Any]


class RawEvent(AnyEvent):
    """An event of a raw stream."""

    value: Any = Field(description="Text, or `{base64}` if it is not UTF-8.")


class TypedEvent(AnyEvent):
    """An event of a typed stream."""

    columns: dict[str, Any]


class GapView(View):
    """Offsets whose events are no longer available; `next` is exclusive."""

    first: int
    next: int
    reason: str


class EventsView(View):
    """A page of events."""

    events: list[RawEvent] | list[TypedEvent]
    first: int = Field(description="First offset that was read.")
    next: int = Field(description="Offset of the next page.")
    end: int = Field(description="End of the range, exclusive.")
    searched: int = Field(description="Number of events that were read.")
    gap: GapView | None = Field(description="Missing offsets before these events.")


class BufferView(View):
    """The server's buffer in front of the log, and its limits."""

    events: int
    bytes: int
    max_events: int
    max_bytes: int
    mode: str
    full: str | None = Field(description="The limit that currently blocks producers.")


class ReaderView(View):
    """The progress of a reader."""

    reader: str
    cursor: int = Field(description="Next offset to read.")
    lag_events: int
    lag_ms: int | None = Field(description="How long its next event has been waiting.")
    skipped: int = Field(description="Events that were evicted or damaged before they were read.")
    updated: datetime | None


class StatsView(View):
    """The statistics of a stream."""

    stream: str
    events: int
    bytes: int
    memory_bytes: int = Field(description="Part of `bytes` that is in memory.")
    segments: int
    first: int
    next: int
    oldest: datetime | None
    newest: datetime | None
    oldest_age_ms: int | None
    newest_age_ms: int | None
    buffer: BufferView
    counters: dict[str, int] = Field(
        description="Number of dropped, evicted or quarantined events, by reason."
    )
    readers: list[ReaderView]
    guarantee: str = Field(description="Guarantee of an acknowledgement, as text.")
    transient: bool
    note: str | None = Field(description="Notice for transient streams.")


def stream_routes(service: Service, feed: Feed) -> APIRouter:
    """The routes below the path of a stream."""
    router = APIRouter(prefix="/streams/{name}", tags=["streams"])
    doors = Doors(service)
    tails = Tails(feed)

    @router.get(
        "/events",
        summary="Read events of a stream",
        description=_EVENTS,
        operation_id="readEvents",
        response_model=EventsView,
        responses=failures(404, 422),
    )
    def events(
        name: StreamName,
        position: Annotated[PositionText | None, Query(description=f"{_POSITION} Default: earliest.")] = None,
        last: Annotated[
            int | None,
            Query(ge=1, le=MOST, description="Instead of `position`: this many of the most recent events."),
        ] = None,
        to: Annotated[
            PositionText | None,
            Query(description="End of the range, exclusive. Default: the current end of the stream."),
        ] = None,
        where: Annotated[str | None, Query(min_length=1, max_length=2000, description=_WHERE)] = None,
        limit: Annotated[
            int | None,
            Query(
                ge=1, le=MOST, description=f"Maximum number of events to return. Default: {FEW}, or `last`."
            ),
        ] = None,
    ) -> Response:
        if position is not None and last is not None:
            message = "'last' and 'position' can't be combined"
            raise Invalid(Problem(code="exclusive_parameters", message=message, path="last"))
        door = doors.find(name)
        condition = condition_of(door, where) if where is not None else None
        until = parse_position(to) if to else None
        start, end = range_of(door, parse_position(position or "earliest"), until)
        most = limit or last or FEW
        if last is not None and condition is not None:
            found = search_back(door, condition, start, end, min(last, most))
        elif condition is not None:
            found = search(door, condition, start, end, most)
        else:
            begin = start if last is None else max(start, end - last)
            page = read_page(door, begin, min(most, end - begin)) if begin < end else EventPage(begin)
            found = Search(begin, page.next, page.events, page.gap, len(page.events))
        body = {**vars(found), "gap": asdict(found.gap) if found.gap else None, "end": end}
        # Already plain JSON: creating models of thousands of events would take longer than reading them.
        return Response(json.dumps(body, ensure_ascii=False), media_type="application/json")

    @router.get(
        "/tail",
        summary="Follow a stream",
        description=_TAIL,
        operation_id="tailStream",
        response_class=EventStream,
        responses={**described("The events."), **failures(404, 422)},
    )
    async def tail(
        name: StreamName,
        position: Annotated[PositionText, Query(description=_POSITION)] = "latest",
        contains: Annotated[
            str | None,
            Query(alias="filter", max_length=1000, description="Only events whose JSON contains this text."),
        ] = None,
        last_event_id: Annotated[
            int | None,
            Header(ge=0, le=LAST_OFFSET, description="Offset to continue at, instead of `position`."),
        ] = None,
    ) -> EventStream:
        door = await to_thread.run_sync(doors.find, name)
        begin = last_event_id
        if begin is None:
            begin = await to_thread.run_sync(start_of, door, parse_position(position), None)
        return tails.response(door, begin, contains)

    @router.get(
        "/stats",
        summary="Get the statistics of a stream",
        operation_id="getStreamStats",
        responses=failures(404, 422),
    )
    def stats(name: StreamName) -> StatsView:
        return StatsView.model_validate(asdict(stats_of(doors.find(name))))

    @router.delete(
        "/readers/{reader}",
        summary="Forget a reader of a stream",
        description="Removes the cursor of the reader. Events are no longer retained for it.",
        operation_id="forgetReader",
        status_code=204,
        responses=failures(403, 404, 409, 422),
    )
    def forget(
        name: StreamName,
        reader: Annotated[str, Path(description="Name of the reader, as in `stats`.", max_length=400)],
    ) -> None:
        log = doors.find(name).log
        known = [cursor.reader for cursor in log.storage.cursors()]
        if reader not in known:
            hint = did_you_mean(reader, known) if known else None
            raise NotFound(Problem(code="not_found", message=f"there is no reader '{reader}'", hint=hint))
        _require_gone(service, reader)
        log.forget_cursor(reader)

    return router


def _require_gone(service: Service, reader: str) -> None:
    """Conflict if the flow of a reader still exists."""
    kind, _, rest = reader.partition(":")
    owner = kind.capitalize()
    found = service.registry.find(owner, rest.rpartition(":")[0]) if owner in RUNNABLE else None
    if found is not None and flow_name(found) == reader:
        raise Conflict(
            Problem(
                code="reader_in_use",
                message=f"{kind} '{found.name}' reads this stream and would have to start over",
                hint=f"delete the {kind}: this also removes its position in the stream",
            )
        )
