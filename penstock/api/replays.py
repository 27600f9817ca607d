"""Replays: processing a range of a stream with the steps of a flow again, while the flow continues."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field, ValidationError

from penstock.api.bodies import OneBody, described
from penstock.api.errors import Responses, failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.pipes import RunError, Status
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.events.replays import Order, Planned, Replay, Replays
from penstock.errors import Invalid, Problem
from penstock.specs.base import Spec
from penstock.specs.positions import PositionText
from penstock.specs.problems import problems_of

_SINKS = (
    "`all` sinks of the flow, a list of their ids, or `{shadow: …}` with a separate sink, such as `{type: "
    "file, …}` or `{type: stream, …}`: then no other sink receives the events."
)


Shadow = Annotated[dict[Literal["shadow"], dict[str, Any]], Field(min_length=1)]
"""A sink that does not belong to the flow, in the form used in a pipeline."""


class ReplayOrder(Spec):
    """The range to replay, and the sinks."""

    from_: PositionText = Field(
        alias="from", description="First event: earliest, latest, offset:N or time:ISO 8601."
    )
    to: PositionText | None = Field(
        default=None, description="End of the range, exclusive. Default: the current end of the stream."
    )
    sinks: Annotated[Literal["all"] | list[str] | Shadow, Field(description=_SINKS)]
    dry_run: bool = Field(default=False, description="Only count the events.")
    name: str | None = Field(default=None, description="Name of the replay. Default: `<name> replay N`.")


class RangeView(View):
    """Events of a stream: offsets `first` to `next`, the latter exclusive."""

    stream: str
    first: int
    next: int
    events: int = Field(description="Number of events in the range that can be read.")
    bytes: int = Field(description="Approximate size in memory.")
    first_time: datetime | None
    last_time: datetime | None


class EndingView(View):
    """A sink that receives the replayed events."""

    id: str
    type: str
    guarantee: str
    again: bool = Field(description="Whether the flow itself also delivers these events to this sink.")


class ReplayView(View):
    """A replay: a pipeline with an end position."""

    name: str
    id: str
    stream: str
    first: int
    next: int
    total: int
    delivered: int
    percent: float
    status: Status
    phase: str
    error: RunError | None
    created_at: datetime


class ReplayAnswer(View):
    """The plan of a replay, and the replay if it was started."""

    range: RangeView
    sinks: list[EndingView]
    warnings: list[Problem]
    replay: ReplayView | None = Field(description="The replay pipeline; null after a dry run.")


def replay_routes(service: Service, kind: Kind) -> APIRouter:
    """The replay routes of a kind whose flows read streams."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}", tags=[kind.place])
    replays = Replays(service)
    started: Responses = {201: {"model": ReplayAnswer, "description": "The replay has been started."}}

    @router.post(
        "/replay",
        summary=f"Replay events through {kind.one}",
        description="Creates and starts a pipeline that processes a range of the stream with the current "
        "steps of the flow, and then completes. The flow keeps running. The pipeline has the label "
        "`replay_of`.",
        operation_id=f"replay{kind.name}",
        response_model=ReplayAnswer,
        responses={**started, **failures(400, 403, 404, 409, 413, 422)},
        openapi_extra=described(ReplayOrder.model_json_schema()),
    )
    def replay(name: Name, raw: OneBody, response: Response) -> ReplayAnswer:
        asked = _order(raw)
        sinks = asked.sinks["shadow"] if isinstance(asked.sinks, dict) else asked.sinks
        order = Order(asked.from_, asked.to, sinks, asked.name)
        try:
            planned = replays.start(kind.name, name, order, dry_run=asked.dry_run)
        except Invalid as error:
            raise Invalid(*map(_told_here, error.problems)) from None
        if planned.replay is not None:
            response.status_code = 201
        return replay_answer(planned)

    @router.get(
        "/replays",
        summary=f"List the replays of {kind.one}",
        operation_id=f"list{kind.name}Replays",
        responses=failures(404, 422),
    )
    def list_(name: Name) -> list[ReplayView]:
        return [replay_view(each) for each in replays.of(kind.name, name)]

    return router


def replay_answer(planned: Planned) -> ReplayAnswer:
    """The view of a planned replay."""
    return ReplayAnswer(
        range=RangeView(**asdict(planned.range)),
        sinks=[EndingView(**asdict(sink)) for sink in planned.sinks],
        warnings=planned.warnings,
        replay=planned.replay and replay_view(planned.replay),
    )


def replay_view(replay: Replay) -> ReplayView:
    """The view of a replay."""
    record, flow = replay.record, replay.record.flow
    assert flow is not None
    return ReplayView(
        name=record.name,
        id=record.id,
        stream=replay.stream,
        first=replay.first,
        next=replay.next,
        total=replay.total,
        delivered=replay.delivered,
        percent=round(100 * replay.delivered / replay.total, 1) if replay.total else 100.0,
        status=flow.status,
        phase=flow.phase,
        error=flow.error,
        created_at=record.created_at,
    )


def _order(raw: Any) -> ReplayOrder:
    try:
        return ReplayOrder.model_validate(raw)
    except ValidationError as error:
        raise Invalid(*problems_of(error, ReplayOrder)) from None


def _told_here(problem: Problem) -> Problem:
    """A problem of the replay's pipeline, with its path in the request."""
    places = {"spec.sinks[0]": "sinks.shadow", "metadata.name": "name"}
    for there, here in places.items():
        if problem.path and problem.path.startswith(there):
            return problem.model_copy(update={"path": here + problem.path.removeprefix(there)})
    return problem
