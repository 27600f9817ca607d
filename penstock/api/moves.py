"""Moving a stream to another storage while it is in use."""

from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field, ValidationError

from penstock.api.bodies import OneBody, described
from penstock.api.errors import failures
from penstock.api.ingest import StreamName
from penstock.api.views import View
from penstock.control.streams.moves import Moves, MoveState, Phase
from penstock.errors import Invalid, Problem
from penstock.specs.base import Spec
from penstock.specs.problems import problems_of

_MOVE = """\
Copies the stream to a topic while it is in use, then switches over; appends wait briefly for the switch.
Offsets, producers, cursors and counters are kept. The response is sent when the copy has started. Repeat
the request to continue a move that failed or was interrupted."""


class MoveOrder(Spec):
    """The target of a move of a stream."""

    to: Literal["kafka"] = Field(description="Target storage.")


class MoveView(View):
    """The progress of a move."""

    stream: str
    to: str
    phase: Phase = Field(description="`interrupted`: stopped by a restart or an undo; it can be continued.")
    bytes: int = Field(description="Bytes copied so far.")
    total_bytes: int = Field(description="Bytes to copy in total, so far.")
    error: Problem | None
    started_at: datetime | None


def move_routes(moves: Moves) -> APIRouter:
    """The routes of moves."""
    router = APIRouter(prefix="/streams/{name}", tags=["streams"])

    @router.post(
        "/move",
        summary="Move a stream to another storage",
        description=_MOVE,
        operation_id="moveStream",
        status_code=202,
        responses=failures(400, 403, 404, 409, 413, 422),
        openapi_extra=described(MoveOrder.model_json_schema()),
    )
    def move(name: StreamName, raw: OneBody) -> MoveView:
        return _view(moves.start(name, _order(raw).to))

    @router.get(
        "/move",
        summary="Get the progress of a move",
        operation_id="getStreamMove",
        responses=failures(404, 422),
    )
    def state(name: StreamName) -> MoveView:
        return _view(moves.state(name))

    @router.delete(
        "/move",
        summary="Undo a move that is not completed",
        description="The stream stays in its storage, and the copy is removed.",
        operation_id="undoStreamMove",
        status_code=204,
        responses=failures(403, 404, 409, 422),
    )
    def undo(name: StreamName) -> None:
        moves.undo(name)

    return router


def _order(raw: Any) -> MoveOrder:
    try:
        return MoveOrder.model_validate(raw)
    except ValidationError as error:
        raise Invalid(*problems_of(error, MoveOrder)) from None


def _view(state: MoveState) -> MoveView:
    started = datetime.fromtimestamp(state.started_at, UTC) if state.started_at else None
    return MoveView(
        stream=state.stream,
        to=state.to,
        phase=state.phase,
        bytes=state.bytes,
        total_bytes=state.total_bytes,
        error=state.error,
        started_at=started,
    )
