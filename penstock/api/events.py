"""Changes of documents and flows in real time, as server-sent events."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from penstock.api.errors import failures
from penstock.api.feed import Feed
from penstock.api.sse import EventStream, described
from penstock.api.views import View
from penstock.control.registry import Event

_DESCRIPTION = """\
Each event has the type `created`, `updated`, `deleted` or `status` (of a flow), `joined` or `left`
(of a worker), and as data a JSON object `{id, at, kind, name, type, data}`. Begins after the event of
`Last-Event-ID` or `after`, otherwise with new events. Only the newest 10,000 events are kept: a client
that returns later first gets an event `gap` with `{missed}`, the number of lost events."""

_NEWEST = 2**63 - 1


class EventInfo(View):
    """A change of a document, a flow or a worker."""

    id: int
    at: datetime
    kind: str
    name: str
    type: str
    data: dict[str, Any]


def event_routes(feed: Feed) -> APIRouter:
    """The route for following events."""
    router = APIRouter(tags=["events"])

    @router.get(
        "/events",
        summary="Follow changes",
        description=_DESCRIPTION,
        operation_id="followEvents",
        response_class=EventStream,
        responses={**described("The events."), **failures(422)},
    )
    async def events(
        after: Annotated[
            int | None, Query(ge=0, le=_NEWEST, description="Id of the last event received.")
        ] = None,
        last_event_id: Annotated[
            int | None,
            Header(ge=0, le=_NEWEST, description="Same as `after`; sent by a browser that reconnects."),
        ] = None,
    ) -> EventStream:
        position = await feed.position(after if last_event_id is None else last_event_id)
        return EventStream(_stream(feed, position))

    return router


async def _stream(feed: Feed, position: int) -> AsyncIterator[bytes]:
    yield format_sse_event(comment="connected", retry=1000)
    if missed := await feed.missed(position):
        yield format_sse_event(event="gap", data_str=json.dumps({"missed": missed}))
    async for lines in feed.follow(position, _lines):
        yield lines or KEEPALIVE_COMMENT


def _lines(found: Sequence[Event]) -> bytes:
    return b"".join(map(_line, found))


def _line(event: Event) -> bytes:
    data = EventInfo(**vars(event)).model_dump_json()
    return format_sse_event(id=str(event.id), event=event.type, data_str=data)
