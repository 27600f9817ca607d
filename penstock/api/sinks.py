"""The sinks of what runs, one by one: how far each has come, and letting it catch up."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.views import View
from penstock.connectors.base import Guarantee
from penstock.control.documents.service import Service
from penstock.control.events.sinks import SinkStanding, catch_up, sinks_of
from penstock.engine.delivery.sink_states import Kept, State

SinkName = Annotated[str, Path(description="The id of the sink in its document.", min_length=1)]


class GapInfo(View):
    """Batches in a row that were committed without a sink."""

    first: int | None = Field(description="The first offset of the source in them; null if it has none.")
    next: int | None = Field(description="The first offset after them.")
    batches: int
    events: int | None = Field(description="How many events they have for this sink, if that is known.")
    since: datetime
    kept: Kept = Field(
        description="Where they are: still in the `stream`, in a `file` beside the checkpoint, or `lost`."
    )
    why: str | None = Field(description="Why they are lost.")


class SinkInfo(View):
    """A sink of a flow, and how it is."""

    id: str
    type: str
    path: str = Field(description="Its place in the document, such as `spec.sinks[1]`.")
    guarantee: Guarantee
    required: bool
    state: State = Field(
        description="`in_sync` takes part in each batch; `failing` has refused the current batch and taken "
        "none since; `behind` has missed batches and waits to try again; `catching_up` gets what it missed."
    )
    cursor: int | None = Field(description="All events of the source before this offset were dealt with.")
    lag: int | None = Field(
        description="Events that the sink has not received yet; null if that is not known."
    )
    last_ack_at: datetime | None
    failures: int
    last_error: str | None = Field(description="With its place in the document; it may be over.")
    gaps: list[GapInfo]


def sink_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of a kind whose documents can run."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/sinks", tags=[kind.place])

    @router.get(
        "",
        summary=f"List the sinks of {kind.one}, and how they are",
        operation_id=f"list{kind.name}Standings",
        responses=failures(404, 409, 422),
    )
    def list_(name: Name) -> list[SinkInfo]:
        return [sink_info(each) for each in sinks_of(service, kind.name, name)]

    @router.post(
        "/{sink}/catch-up",
        summary=f"Let a sink of {kind.one} catch up now",
        description="It would do so anyway, after a while. What has completed is started for it; what is "
        "paused, stopped or failed has to be resumed or started. The answer has the earlier state.",
        operation_id=f"catchUp{kind.name}",
        responses=failures(403, 404, 409, 422),
    )
    def catch_up_(name: Name, sink: SinkName) -> SinkInfo:
        return sink_info(catch_up(service, kind.name, name, sink))

    return router


def sink_info(found: SinkStanding) -> SinkInfo:
    """A sink as it is shown."""
    return SinkInfo.model_validate({**asdict(found.standing), **asdict(found)})
