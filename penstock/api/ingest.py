"""Sending events: to a stream, or to a source that takes them over HTTP."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError

from penstock.api.errors import ErrorBody, Responses, failures
from penstock.api.intake import Intake, letters
from penstock.api.views import View
from penstock.control.doors import Door, Doors
from penstock.control.ingest import MOST_BYTES, Entrances
from penstock.control.service import Service
from penstock.errors import Invalid, Problem
from penstock.streams.decode import Decoded, Misfit
from penstock.streams.guarantee import combined
from penstock.streams.storage import Appended, Producer

StreamName = Annotated[
    str,
    Path(
        description="The name or the id of a stream; also `<pipeline>.in`, what was pushed to a pipeline, "
        "and `<stream>.dead`, what did not fit a typed stream.",
        min_length=1,
        max_length=160,
    ),
]

T = TypeVar("T")

MOST_TOLD = 100
"""Misfits that an answer names; it counts all of them."""

_LARGEST = 2**63 - 1

_BODIES = """\
The body is `application/json` (one event, or an array of them), `application/x-ndjson`, `text/csv` (the first
row names the columns), `text/plain` (an event per line), `application/octet-stream` (one event),
`application/vnd.apache.arrow.stream`, or `application/vnd.penstock.events+json`, which has events as they are
shown: with `key`, `headers` and `value` or `columns`. `Content-Encoding` may be `gzip` or `zstd`.

The answer comes when the events are kept as `guarantee` says. Events that cannot be decoded make it 400 and
are named by their lines. With `atomic` nothing is kept then. Without it the others are kept, and these go to
the dead-letter stream of a typed stream; a raw stream has none, and the answer is all that is told of them.

A full stream answers 503 or, if its settings say that it drops, 429, both with `Retry-After`.

With `producer` and `batch` a request can be repeated: a batch that was kept before is not kept again, and
the answer has the offsets it got then. Batches may arrive in any order. The answer is 409 if the number was
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
    """Offsets in a stream, `next` not included."""

    stream: str
    first: int
    next: int


class Accepted(Range):
    """Events that are kept."""

    accepted: int = Field(description="How many.")
    duplicate: bool = Field(description="Whether this batch of the producer had been kept before.")
    guarantee: str = Field(description="What that means, in words.")
    also: list[Range] = Field(
        default_factory=list,
        description="Where else they went, if several pipelines take them from the source.",
    )


class MisfitsErrorBody(ErrorBody):
    """Events that could not be decoded, and what became of them and of the others."""

    misfits: int = Field(
        default=0, description="How many could not be decoded; `errors` names the first of them."
    )
    accepted: int = Field(default=0, description="How many others were kept.")
    first: int | None = Field(default=None, description="Their first offset; null if nothing was kept.")
    next: int | None = Field(default=None, description="The offset after them.")
    dead_letters: Range | None = Field(
        default=None, description="Where the misfits are; null if they were not kept."
    )


_ANSWERS: Responses = {
    400: {"model": MisfitsErrorBody, "description": "Some events, or all, could not be decoded."},
    **failures(403, 404, 409, 413, 415, 422, 429, 503),
}


class Options(BaseModel):
    """What a sender says beside its events."""

    atomic: bool | None = Field(
        default=None, description="Whether nothing is kept if an event cannot be decoded."
    )
    key: str | None = Field(default=None, description="The key of events that bring none.")
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
        description="Name of the sender, so that a repeated batch is kept once.",
    )
    batch: int | None = Field(
        default=None,
        ge=0,
        le=_LARGEST,
        description="The number of this batch of the producer: one for each batch, the same for a repeat.",
    )
    epoch: int = Field(
        default=0, ge=0, le=_LARGEST, description="A later one of the same producer fences this one."
    )

    def sender(self) -> Producer | None:
        """Who sends, as the log knows it."""
        if self.producer is not None and self.batch is not None:
            return Producer(self.producer, self.batch, self.epoch)
        if self.producer is None and self.batch is None:
            return None
        missing, given = ("batch", "producer") if self.batch is None else ("producer", "batch")
        message = f"'{given}' goes with '{missing}'"
        raise Invalid(Problem(code="missing_parameter", message=message, path=missing))

    def marks(self, events: int) -> Sequence[tuple[int, int, str, bool]]:
        """The transaction that events belong to, as the log keeps it."""
        return [(0, events, self.tx, self.tx_end)] if self.tx is not None and events else ()


_NOTHING = Options()


def _options(request: Request) -> Options:
    # By hand: most requests have none, and FastAPI would look for each of them all the same.
    if not request.scope["query_string"]:
        return _NOTHING
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
    """Looks something up once for all who ask meanwhile: a busy stream has many senders."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find
        self._searches: dict[str, asyncio.Task[T]] = {}

    async def __call__(self, name: str) -> T:
        search = self._searches.get(name)
        if search is None:
            search = self._searches[name] = asyncio.create_task(to_thread.run_sync(self._find, name))
            search.add_done_callback(lambda _: self._searches.pop(name, None))
        return await asyncio.shield(search)


def ingest_routes(service: Service) -> APIRouter:
    """The routes that take events."""
    router = APIRouter()
    intake, doors, entrances = Intake(), Doors(service), Entrances(service)

    find_door, find_entrance = _Once(doors.find), _Once(entrances.find)

    async def door(name: str) -> Door:
        return doors.known(name) or await find_door(name)

    async def take(request: Request, open: Sequence[Door], limit: int, options: Options) -> JSONResponse:
        async with intake.body(request, limit) as body:
            sender = options.sender()
            if sender is not None:
                sender = replace(sender, digest=await intake.digest(body))
            sending = _Sending(request, intake, body, options, sender)
            return _answer([await sending.to(each) for each in open])

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
    async def append(name: StreamName, request: Request) -> JSONResponse:
        return await take(request, [await door(name)], MOST_BYTES, _options(request))

    @router.post(
        "/ingest/{source:path}",
        tags=["ingest"],
        summary="Send events to a source",
        description=f"To the stream of an `http` source, or to the pipelines that take events from it.\n\n"
        f"{_BODIES}",
        operation_id="ingest",
        response_model=Accepted,
        responses=_ANSWERS,
        openapi_extra=_DECLARED,
    )
    async def ingest(
        source: Annotated[
            str,
            Path(
                description="The id or the path of an `http` source, or the id of a pipeline that has one.",
                min_length=1,
                max_length=1000,
            ),
        ],
        request: Request,
    ) -> JSONResponse:
        entrance = entrances.known(source) or await find_entrance(source)
        open = [await door(stream) for stream in entrance.streams]
        options = _options(request)
        if options.atomic is None and entrance.atomic:
            options = options.model_copy(update={"atomic": True})
        return await take(request, open, entrance.max_body_bytes, options)

    return router


@dataclass(frozen=True)
class Sent:
    """What became of a body in one stream."""

    door: Door
    accepted: int
    appended: Appended | None
    misfits: Sequence[Misfit]
    dead: Appended | None


class _Sending:
    """One request on its way to its streams."""

    def __init__(
        self, request: Request, intake: Intake, body: bytes, options: Options, sender: Producer | None
    ) -> None:
        self._request, self._intake, self._body = request, intake, body
        self._options, self._sender = options, sender
        self._key = None if options.key is None else options.key.encode()

    async def to(self, door: Door) -> Sent:
        """Append the events to a stream, and what does not fit to its dead letters.

        Dead letters go first: if the append then fails and the sender repeats it, the stream itself has
        nothing twice. Those of a numbered batch go last: if it is refused, none of it is kept.
        """
        options = self._options
        type = self._request.headers.get("content-type")
        decoded = await self._intake.decode(self._body, type, door, self._key)
        if decoded.misfits and options.atomic:
            return Sent(door, 0, None, decoded.misfits, None)
        count = decoded.batch.num_rows
        if not count and not decoded.misfits and options.tx is not None:
            message = "a transaction has events: without one it can neither begin nor end"
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
            door.log.storage.count(dead_letters=len(decoded.misfits))
        return dead


def _answer(sent: Sequence[Sent]) -> JSONResponse:
    # Plain mappings, made by hand: this is the answer to every event that comes alone.
    first, *others = sent
    if first.misfits:
        return JSONResponse(_misfits(first), 400)
    return JSONResponse(
        {
            **_range(first.door.id, first.appended),
            "accepted": first.accepted,
            "duplicate": first.appended is not None and first.appended.duplicate,
            "guarantee": combined({each.door.id: each.door.guarantee for each in sent}),
            "also": [_range(other.door.id, other.appended) for other in others],
        }
    )


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
