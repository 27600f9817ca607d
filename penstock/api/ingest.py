"""Ingest of events over HTTP: to a stream, or to an `http` source."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, TypeVar

import orjson
from anyio import to_thread
from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from penstock.api.errors import ErrorBody, Responses, error_response, failures, retry_header
from penstock.api.intake import Intake, header, letters
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.streams.doors import Door, Doors
from penstock.control.streams.ingest import MOST_BYTES, Entrance, Entrances
from penstock.errors import Invalid, PenstockError, Problem
from penstock.streams.decode import Decoded, Misfit
from penstock.streams.events import Event
from penstock.streams.guarantee import combined
from penstock.streams.storage import Appended, Producer

LONGEST_STREAM, LONGEST_SOURCE = 160, 1000
"""Maximum characters of a name in a path."""

StreamName = Annotated[
    str,
    Path(
        description="Name or id of a stream; also `<pipeline>.in`, the events pushed to a pipeline, and "
        "`<stream>.dead`, events that didn't match the schema of a typed stream.",
        min_length=1,
        max_length=LONGEST_STREAM,
    ),
]

T = TypeVar("T")

MOST_TOLD = 100
"""Maximum misfits listed in a response, which counts all of them."""

_LARGEST = 2**63 - 1

_BODIES = """\
The body is `application/json` (one event, or an array of them), `application/x-ndjson`, `text/csv` (the first
row names the columns), `text/plain` (an event per line), `application/octet-stream` (one event),
`application/vnd.apache.arrow.stream`, or `application/vnd.penstock.events+json`, which has events as they are
shown: with `key`, `headers` and `value` or `columns`. `Content-Encoding` may be `gzip` or `zstd`.

The response is sent when the events are stored as `guarantee` says. If events can't be decoded, the status is
400 and the response lists their lines. With `atomic` nothing is stored in that case. Without it the other
events are stored, and the undecodable ones go to the dead-letter stream of a typed stream; a raw stream has
none, and only the response reports them.

A full stream responds with 503 or, if it is configured to drop events, with 429, both with `Retry-After`. If
several pipelines receive the events and some have stored them before one rejects them, the code is
`partly_kept` and `kept` lists those; with `producer` and `batch` the request can be repeated.

With `producer` and `batch` a request can be repeated: a batch that was stored before is not stored again, and
the response has its original offsets. Batches may arrive in any order. The status is 409 if the number was
used for another body (`batch_conflict`), or is below the 32 highest of the producer (`batch_too_old`)."""

_MEDIA_TYPES = (
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "text/plain",
    "application/octet-stream",
    "application/vnd.apache.arrow.stream",
    "application/vnd.penstock.events+json",
)


class Range(View):
    """A range of offsets in a stream; `next` is exclusive."""

    stream: str
    first: int
    next: int


class Accepted(Range):
    """Events that were stored."""

    accepted: int = Field(description="Number of stored events.")
    duplicate: bool = Field(description="Whether every stream had already stored this batch of the producer.")
    guarantee: str = Field(description="Guarantee of this acknowledgement, as text.")
    also: list[Range] = Field(
        default_factory=list,
        description="Other streams that stored the events, if several pipelines read the source.",
    )


class MisfitsErrorBody(ErrorBody):
    """Events that could not be decoded, and where they and the others are stored."""

    misfits: int = Field(
        default=0, description="Number of events that could not be decoded; `errors` lists the first of them."
    )
    accepted: int = Field(default=0, description="Number of other events that were stored.")
    first: int | None = Field(
        default=None, description="First offset of the stored events; null if nothing was stored."
    )
    next: int | None = Field(default=None, description="Offset after the last stored event.")
    dead_letters: Range | None = Field(
        default=None, description="Stream with the undecodable events; null if they were not stored."
    )


class RefusedErrorBody(ErrorBody):
    """Events that a stream has rejected, and the streams that have already stored them."""

    kept: list[Range] = Field(
        default_factory=list,
        description="With the code `partly_kept`: streams that stored the events; otherwise nothing was "
        "stored.",
    )


_ANSWERS: Responses = {
    400: {"model": MisfitsErrorBody, "description": "Some events, or all, could not be decoded."},
    **failures(403, 404, 413, 415, 422),
    **{status: {**answer, "model": RefusedErrorBody} for status, answer in failures(409, 429, 503).items()},
}


class Options(BaseModel):
    """The options of a request that sends events."""

    atomic: bool | None = Field(default=None, description="Store nothing if any event can't be decoded.")
    key: str | None = Field(default=None, description="Key for events without a key.")
    tx: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The source transaction that the events belong to.",
    )
    tx_end: bool = Field(default=True, description="Whether the transaction ends with them.")
    producer: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Name of the sender, so that a repeated batch is stored once.",
    )
    batch: int | None = Field(
        default=None,
        ge=0,
        le=_LARGEST,
        description="Number of this batch: unique per producer, the same for a repeat.",
    )
    epoch: int = Field(
        default=0, ge=0, le=_LARGEST, description="Epoch of the producer. A higher epoch fences lower ones."
    )

    def sender(self) -> Producer | None:
        """The producer and batch of the request; None if it has none."""
        if self.producer is not None and self.batch is not None:
            return Producer(self.producer, self.batch, self.epoch)
        if self.producer is None and self.batch is None:
            return None
        missing, given = ("batch", "producer") if self.batch is None else ("producer", "batch")
        message = f"'{given}' goes with '{missing}'"
        raise Invalid(Problem(code="missing_parameter", message=message, path=missing))

    def marks(self, events: int) -> Sequence[tuple[int, int, str, bool]]:
        """The transaction that the events belong to, in the form that the log stores."""
        return [(0, events, self.tx, self.tx_end)] if self.tx is not None and events else ()


NO_OPTIONS = Options()


def _options(request: Request) -> Options:
    # Parsed here: most requests have no options, and FastAPI would look up each of them anyway.
    if not request.scope["query_string"]:
        return NO_OPTIONS
    try:
        return Options.model_validate(dict(request.query_params))
    except ValidationError as error:
        details = [{**found, "loc": ("query", *found["loc"])} for found in error.errors()]
        raise RequestValidationError(details) from None


_DECLARED: dict[str, Any] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": schema,
            "description": schema["description"],
        }
        for name, schema in Options.model_json_schema()["properties"].items()
    ],
    "requestBody": {"required": False, "content": {name: {"schema": {}} for name in _MEDIA_TYPES}},
}


class _Once(Generic[T]):
    """Shares one look-up among concurrent requests: a busy stream has many producers."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find
        self._searches: dict[str, asyncio.Task[T]] = {}

    async def __call__(self, name: str) -> T:
        search = self._searches.get(name) or self._search(name)
        return await asyncio.shield(search)

    def ahead(self, name: str) -> None:
        """Start a look-up ahead of time. A failure is ignored: the next request that needs it retries."""
        if name not in self._searches:
            self._search(name).add_done_callback(lambda search: search.cancelled() or search.exception())

    def _search(self, name: str) -> asyncio.Task[T]:
        search = self._searches[name] = asyncio.create_task(to_thread.run_sync(self._find, name))
        search.add_done_callback(lambda _: self._searches.pop(name, None))
        return search


@dataclass(frozen=True)
class Target:
    """The streams that store the events of a request, and the rules of their source."""

    doors: Sequence[Door]
    limit: int = MOST_BYTES
    """Maximum size of a body in bytes."""
    atomic: bool = False
    """Whether requests are atomic by default."""


class Ingest:
    """Finds the streams of requests, and appends the events of their bodies."""

    def __init__(self, service: Service) -> None:
        self._intake, self._doors, self._entrances = Intake(), Doors(service), Entrances(service)
        self._find_door, self._find_entrance = _Once(self._doors.find), _Once(self._entrances.find)

    def known_stream(self, name: str) -> Target | None:
        """The target of a stream's name, if cached: without a query of the registry."""
        door = self._known_door(name)
        return None if door is None else Target((door,))

    def known_source(self, source: str) -> Target | None:
        """The target of a source's name, if cached: without a query of the registry."""
        entrance = self._entrances.known(source)
        if entrance is None:
            return None
        if self._entrances.expire_soon:
            self._find_entrance.ahead(source)
        doors = [door for stream in entrance.streams if (door := self._known_door(stream)) is not None]
        return _target(entrance, doors) if len(doors) == len(entrance.streams) else None

    async def stream(self, name: str) -> Target:
        """The target of a stream's name; NotFound if there is no such stream."""
        return Target((await self._door(name),))

    async def source(self, source: str) -> Target:
        """The target of a source's name; NotFound or Conflict if no stream stores its events."""
        entrance = self._entrances.known(source) or await self._find_entrance(source)
        return _target(entrance, [await self._door(stream) for stream in entrance.streams])

    def _known_door(self, name: str) -> Door | None:
        door = self._doors.known(name)
        if door is not None and self._doors.expires_soon(name):
            self._find_door.ahead(name)
        return door

    async def _door(self, name: str) -> Door:
        return self._doors.known(name) or await self._find_door(name)

    async def take(self, request: Request, target: Target, options: Options) -> Response:
        """Append the events of a request, and return the response; PenstockError if they are rejected."""
        if target.atomic and options.atomic is None:
            options = options.model_copy(update={"atomic": True})
        chosen = target.doors
        async with self._intake.body(request, target.limit) as body:
            sender = options.sender()
            if sender is not None:
                sender = replace(sender, digest=await self._intake.digest(body))
            sending = _Sending(request, self._intake, body, options, sender)
            sent: dict[str, Sent] = {}
            # A stream that was full last time goes first: if it is still full, no stream stores anything.
            for each in (
                sorted(chosen, key=lambda door: door.log.fill["full"] is None) if chosen[1:] else chosen
            ):
                try:
                    sent[each.id] = await sending.to(each)
                except PenstockError as refusal:
                    kept = [done for done in sent.values() if done.accepted]
                    if not kept:
                        raise
                    return _partly_kept(kept, each, refusal, numbered=sender is not None)
            return _answer([sent[each.id] for each in chosen])


def _target(entrance: Entrance, doors: Sequence[Door]) -> Target:
    return Target(doors, entrance.max_body_bytes, entrance.atomic)


def ingest_routes(ingest: Ingest) -> APIRouter:
    """The routes for sending events. Most requests don't reach them: see `Shortcut`."""
    router = APIRouter()

    @router.post(
        "/streams/{name}/events",
        tags=["streams"],
        summary="Append events to a stream",
        description=_BODIES,
        operation_id="appendEvents",
        response_model=Accepted,
        responses=_ANSWERS,
        openapi_extra=_DECLARED,
    )
    async def append(name: StreamName, request: Request) -> Response:
        return await ingest.take(request, await ingest.stream(name), _options(request))

    @router.post(
        "/ingest/{source:path}",
        tags=["ingest"],
        summary="Send events to a source",
        description=f"Appends events to the stream of an `http` source, or to the pipelines that read it.\n\n"
        f"{_BODIES}",
        operation_id="ingest",
        response_model=Accepted,
        responses=_ANSWERS,
        openapi_extra=_DECLARED,
    )
    async def send(
        source: Annotated[
            str,
            Path(
                description="Id or path of an `http` source, or id of a pipeline with an `http` source.",
                min_length=1,
                max_length=LONGEST_SOURCE,
            ),
        ],
        request: Request,
    ) -> Response:
        return await ingest.take(request, await ingest.source(source), _options(request))

    return router


@dataclass(frozen=True)
class Sent:
    """The result of appending a body to one stream."""

    door: Door
    accepted: int
    appended: Appended | None
    misfits: Sequence[Misfit]
    dead: Appended | None


class _Sending:
    """The appends of one request to its streams."""

    def __init__(
        self, request: Request, intake: Intake, body: bytes, options: Options, sender: Producer | None
    ) -> None:
        self._request, self._intake, self._body = request, intake, body
        self._options, self._sender = options, sender
        self._key = None if options.key is None else options.key.encode()

    async def to(self, door: Door) -> Sent:
        """Append the events to a stream, and the misfits to its dead letters.

        Dead letters are appended first: if the append to the stream then fails and the producer retries, the
        stream itself has no duplicates. Dead letters of a numbered batch are appended last: if the batch is
        rejected, none of it is stored.
        """
        options = self._options
        content_type = header(self._request, b"content-type")
        decoded = await self._intake.decode(self._body, content_type, door, self._key)
        if isinstance(decoded, Event):
            appended = await self._intake.append(
                self._request, door.log, decoded, self._sender, options.marks(1)
            )
            return Sent(door, 1, appended, (), None)
        if decoded.misfits and options.atomic:
            return Sent(door, 0, None, decoded.misfits, None)
        count = decoded.batch.num_rows
        if not count and not decoded.misfits and options.tx is not None:
            message = "a transaction needs at least one event"
            raise Invalid(Problem(code="empty_transaction", message=message, path="tx"))
        dead = await self._bury(door, decoded) if self._sender is None else None
        if count:
            appended = await self._intake.append(
                self._request, door.log, decoded.batch, self._sender, options.marks(count)
            )
        else:
            end = await asyncio.to_thread(lambda: door.log.bounds().next)
            appended = Appended(end, end)
        if self._sender is not None:
            dead = await self._bury(door, decoded)
        return Sent(door, count, appended, decoded.misfits, dead)

    async def _bury(self, door: Door, decoded: Decoded) -> Appended | None:
        if not decoded.misfits or door.dead is None:
            return None
        batch = letters(decoded.misfits, door.id)
        dead = await self._intake.append(self._request, door.dead, batch, self._sender)
        if not dead.duplicate:
            door.log.count(dead_letters=len(decoded.misfits))
        return dead


def _answer(sent: Sequence[Sent]) -> Response:
    # Plain mappings instead of models, for speed: this is the response to every single event.
    first, *others = sent
    if first.misfits:
        return JSONResponse(_misfits(first), 400)
    told = {
        **_range(first.door.id, first.appended),
        "accepted": first.accepted,
        "duplicate": all(each.appended is not None and each.appended.duplicate for each in sent),
        "guarantee": combined({each.door.id: each.door.guarantee for each in sent}),
        "also": [_range(other.door.id, other.appended) for other in others],
    }
    return Response(orjson.dumps(told), media_type="application/json")


def _partly_kept(kept: Sequence[Sent], door: Door, refusal: PenstockError, *, numbered: bool) -> JSONResponse:
    """The response if some streams of a request have stored the events and one has rejected them."""
    streams = " and ".join(f"'{each.door.id}'" for each in kept)
    reason = refusal.problems[0]
    problem = Problem(
        code="partly_kept",
        message=f"{streams} stored the events, but '{door.id}' did not: {reason.message}",
        path=reason.path,
        hint="send the same body with the same producer and batch again: no stream stores it twice"
        if numbered
        else f"if you send the events again, {streams} will have them twice; use producer and batch to "
        "avoid that",
    )
    ranges = [_range(each.door.id, each.appended) for each in kept]
    return error_response(refusal.status, [problem], retry_header(refusal), kept=ranges)


def _misfits(sent: Sent) -> dict[str, Any]:
    problems = [
        {"code": misfit.code, "message": misfit.reason, "path": f"line {misfit.line}", "hint": None}
        for misfit in sent.misfits[:MOST_TOLD]
    ]
    return {
        **problems[0],
        "errors": problems,
        "misfits": len(sent.misfits),
        "accepted": sent.accepted,
        "first": sent.appended.first if sent.appended else None,
        "next": sent.appended.next if sent.appended else None,
        "dead_letters": _range(str(sent.door.dead_id), sent.dead) if sent.dead else None,
    }


def _range(stream: str, appended: Appended | None) -> dict[str, Any]:
    assert appended is not None
    return {"stream": stream, "first": appended.first, "next": appended.next}
