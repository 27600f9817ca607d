"""Dead letters: reading, editing and replaying events that a flow could not process."""

from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Query
from pydantic import Field, ValidationError

from penstock.api.bodies import OneBody, described
from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.letter_views import LettersView, LetterView, letter_view, letters_view
from penstock.api.params import Name
from penstock.control.documents.service import Service
from penstock.control.events.letters import DeadLetters
from penstock.control.questions.letter_replay import ReplayRequest
from penstock.engine.letters.reader import Wanted
from penstock.engine.letters.replay import ReplayResult
from penstock.engine.letters.states import STATES, State
from penstock.errors import Invalid, Problem
from penstock.specs.base import Spec
from penstock.specs.positions import LAST_OFFSET, PositionText, parse_position
from penstock.specs.problems import problems_of

S = TypeVar("S", bound=Spec)

MOST = 10_000
"""Maximum letters replayed by one request."""

Offset = Annotated[int, Path(ge=0, le=LAST_OFFSET, description="Offset of the letter in its stream.")]
Step = Annotated[str | None, Query(max_length=400, description="Only letters of this step or sink.")]
Code = Annotated[str | None, Query(max_length=400, description="Only letters with this code.")]
Contains = Annotated[
    str | None, Query(max_length=1000, description="Only letters with this text in the event or the reason.")
]
OfState = Annotated[State | Literal["all"], Query(description="Only letters in this state.")]

_REPLAY = """\
Replays letters through the current revision of the flow: from the step that failed, or from the first
step, for which the event is read again from the source. An event rejected by a sink is delivered to that
sink only. A letter that can't be replayed is rejected with the reason, and the others continue. An event
that fails again becomes a new letter. To continue an interrupted replay, repeat the request; no
exactly-once sink receives an event twice. One request replays at most 10,000 letters: continue with
`next`."""


_SEND = """\
Appends the original event, as it is in the stream that the flow reads, to that stream again, without edits.
Other readers of the stream receive it again too. For letters that can't be replayed, such as those of a flow
with a step that keeps state. The letter then has the state `replayed`."""


class LetterEdit(Spec):
    """An event that replaces the event of a letter."""

    event: dict[str, Any] = Field(description="Input columns of the step.")


class LetterFilter(Spec):
    """A filter for letters."""

    step: str | None = Field(default=None, max_length=400, description="Only letters of this step or sink.")
    code: str | None = Field(default=None, max_length=400, description="Only letters with this code.")
    contains: str | None = Field(
        default=None, max_length=1000, description="Only letters with this text in the event or the reason."
    )
    state: Literal["new", "replayed", "all"] = Field(
        default="new", description="`new` includes interrupted replays; `replayed` replays letters again."
    )


class LettersOrder(Spec):
    """The letters to replay, by `offsets`, by `filter` or `all` new ones, and the options of the replay."""

    offsets: list[Annotated[int, Field(ge=0, le=LAST_OFFSET)]] | None = Field(
        default=None, min_length=1, max_length=MOST, description="Offsets of the letters."
    )
    filter: LetterFilter | None = Field(
        default=None, description="Filter for the letters; with `offsets` only its `state` is used."
    )
    all: bool = Field(default=False, description="All new letters.")
    begin: Literal["step", "start"] = Field(
        default="step", alias="from", description="Start at the step that failed, or at the source."
    )
    position: int = Field(default=0, ge=0, le=LAST_OFFSET, description="Skip letters before this offset.")
    limit: int = Field(default=MOST, ge=1, le=MOST, description="Maximum number of letters to replay.")
    dry_run: bool = Field(default=False, description="Only report which letters could be replayed.")


def letter_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of a runnable kind for dead letters."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/dead-letters", tags=[kind.place])
    letters = DeadLetters(service)

    @router.get(
        "",
        summary=f"Read the dead letters of {kind.one}",
        operation_id=f"list{kind.name}DeadLetters",
        responses=failures(404, 409, 422),
    )
    def page(
        name: Name,
        position: Annotated[
            PositionText | None,
            Query(
                description="Start position: `earliest`, `latest`, `offset:N` or `time:` and ISO 8601. With "
                "`order=newest`, letters before it. Default: the begin of the order."
            ),
        ] = None,
        order: Annotated[
            Literal["oldest", "newest"], Query(description="Which letters come first.")
        ] = "oldest",
        limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of letters to return.")] = 100,
        step: Step = None,
        code: Code = None,
        contains: Contains = None,
        state: OfState = "all",
    ) -> LettersView:
        wanted = Wanted(step, code, contains, STATES if state == "all" else frozenset({state}))
        begin = parse_position(position or ("latest" if order == "newest" else "earliest"))
        return letters_view(letters.page(kind.name, name, begin, limit, wanted, order == "newest"))

    @router.post(
        "/replay",
        summary=f"Replay dead letters of {kind.one}",
        description=_REPLAY,
        operation_id=f"replay{kind.name}DeadLetters",
        responses=failures(400, 403, 404, 409, 413, 422),
        openapi_extra=described(_schema(LettersOrder)),
    )
    def replay(name: Name, raw: OneBody) -> ReplayResult:
        return letters.replay(_request(kind.name, name, _read(raw, LettersOrder)))

    @router.get(
        "/{offset:int}",
        summary=f"Get a dead letter of {kind.one}",
        operation_id=f"get{kind.name}DeadLetter",
        responses=failures(404, 409, 422),
    )
    def get(name: Name, offset: Offset) -> LetterView:
        return letter_view(letters.get(kind.name, name, offset))

    @router.put(
        "/{offset:int}",
        summary=f"Edit a dead letter of {kind.one}",
        description="The original event is kept; saving it again reverts the edit.",
        operation_id=f"edit{kind.name}DeadLetter",
        responses=failures(400, 403, 404, 409, 413, 422),
        openapi_extra=described(_schema(LetterEdit)),
    )
    def edit(name: Name, offset: Offset, raw: OneBody) -> LetterView:
        return letter_view(letters.edit(kind.name, name, offset, _read(raw, LetterEdit).event))

    @router.delete(
        "/{offset:int}",
        summary=f"Discard a dead letter of {kind.one}",
        description="The letter stays in its stream, and replays skip it until it is restored.",
        operation_id=f"discard{kind.name}DeadLetter",
        responses=failures(403, 404, 409, 422),
    )
    def discard(name: Name, offset: Offset) -> LetterView:
        return letter_view(letters.discard(kind.name, name, offset))

    @router.post(
        "/{offset:int}/restore",
        summary=f"Restore a discarded dead letter of {kind.one}",
        operation_id=f"restore{kind.name}DeadLetter",
        responses=failures(403, 404, 409, 422),
    )
    def restore(name: Name, offset: Offset) -> LetterView:
        return letter_view(letters.restore(kind.name, name, offset))

    @router.post(
        "/{offset:int}/send",
        summary=f"Send the event of a dead letter to the input of {kind.one}",
        description=_SEND,
        operation_id=f"send{kind.name}DeadLetter",
        responses=failures(403, 404, 409, 422),
    )
    def send(name: Name, offset: Offset) -> LetterView:
        return letter_view(letters.send(kind.name, name, offset))

    return router


def _read(raw: Any, model: type[S]) -> S:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise Invalid(*problems_of(error, model)) from None


def _schema(model: type[Spec]) -> dict[str, Any]:
    """The schema of a body, with references resolved inline."""

    def placed(node: Any) -> Any:
        if isinstance(node, list):
            return [placed(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return placed(parts[node["$ref"].rpartition("/")[2]])
        return {name: placed(each) for name, each in node.items() if name != "$defs"}

    schema = model.model_json_schema()
    parts = schema.get("$defs", {})
    return dict(placed(schema))


def _request(kind: str, name: str, body: LettersOrder) -> ReplayRequest:
    if body.offsets is None and body.filter is None and not body.all:
        hint = "set offsets, filter, or all: true"
        raise Invalid(Problem(code="nothing_chosen", message="no letters are selected", hint=hint))
    wanted = body.filter or LetterFilter()
    chosen = body.model_dump(include={"offsets", "begin", "position", "limit", "dry_run"})
    return ReplayRequest(kind=kind, id=name, **chosen, **wanted.model_dump())
