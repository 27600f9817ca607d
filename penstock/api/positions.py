"""Moving the position of a flow in its input stream."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field, ValidationError

from penstock.api.bodies import OneBody, described
from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.events.positions import Positions
from penstock.errors import Invalid
from penstock.specs.base import Spec
from penstock.specs.positions import PositionText
from penstock.specs.problems import problems_of

_DESCRIPTION = """\
Moves the position of the flow in its stream: back, so that events are read and delivered again, also by sinks
that are exactly-once, or ahead, so that events are skipped. A running flow is stopped after its current batch
and started again. The state of its steps, such as open windows, is discarded. With `dry_run` nothing is
changed."""


class PositionOrder(Spec):
    """The new position of a flow."""

    to: PositionText = Field(description="New position: earliest, latest, offset:N or time:ISO 8601.")
    dry_run: bool = Field(default=False, description="Only count the events.")


class PositionView(View):
    """A move of a flow's position, and its effects."""

    stream: str
    before: int | None = Field(description="Next offset before the move; null if the flow hasn't read yet.")
    after: int = Field(description="Next offset after the move.")
    again: int = Field(description="Number of events that are read and delivered again.")
    skipped: int = Field(description="Number of events that are skipped.")
    loses: list[str] = Field(description="Ids of the steps whose state is discarded.")
    restarts: bool = Field(description="Whether the flow is stopped and started again.")
    applied: bool


def position_routes(service: Service, kind: Kind) -> APIRouter:
    """The route of a kind whose flows can read streams."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}", tags=[kind.place])
    positions = Positions(service)

    @router.post(
        "/position",
        summary=f"Move the position of {kind.one} in its stream",
        description=_DESCRIPTION,
        operation_id=f"move{kind.name}Position",
        responses=failures(400, 403, 404, 409, 413, 422),
        openapi_extra=described(PositionOrder.model_json_schema()),
    )
    def position(name: Name, raw: OneBody) -> PositionView:
        order = _order(raw)
        move = positions.plan if order.dry_run else positions.move
        return PositionView(**vars(move(kind.name, name, order.to)), applied=not order.dry_run)

    return router


def _order(raw: Any) -> PositionOrder:
    try:
        return PositionOrder.model_validate(raw)
    except ValidationError as error:
        raise Invalid(*problems_of(error, PositionOrder)) from None
