"""The sinks of flows: the progress of each sink, and catching up."""

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

SinkName = Annotated[str, Path(description="Id of the sink in its document.", min_length=1)]


class GapInfo(View):
    """Consecutive batches that were committed without a sink."""

    first: int | None = Field(
        description="First source offset of the batches; null if the source has no offsets."
    )
    next: int | None = Field(description="First offset after the batches.")
    batches: int
    events: int | None = Field(description="Number of events for this sink; null if unknown.")
    since: datetime
    kept: Kept = Field(
        description="Where the batches are kept: in the `stream`, in a `file` next to the checkpoint, or "
        "`lost`."
    )
    why: str | None = Field(description="Why the batches are lost.")


class SinkInfo(View):
    """A sink of a flow, and its state."""

    id: str
    type: str
    path: str = Field(description="Path in the document, such as `spec.sinks[1]`.")
    guarantee: Guarantee
    required: bool
    state: State = Field(
        description="`in_sync`: receives every batch; `failing`: rejected the current batch, which is "
        "retried; `behind`: missed batches and waits for a retry; `catching_up`: receives the missed "
        "batches."
    )
    cursor: int | None = Field(description="All source events before this offset have been processed.")
    lag: int | None = Field(description="Events that the sink has not received yet; null if unknown.")
    last_ack_at: datetime | None
    failures: int
    last_error: str | None = Field(description="The last error with its path; it may be resolved.")
    gaps: list[GapInfo]


def sink_routes(service: Service, kind: Kind) -> APIRouter:
    """The routes of a runnable kind for sinks."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/sinks", tags=[kind.place])

    @router.get(
        "",
        summary=f"List the sinks of {kind.one} with their state",
        operation_id=f"list{kind.name}Standings",
        responses=failures(404, 409, 422),
    )
    def list_(name: Name) -> list[SinkInfo]:
        return [sink_info(each) for each in sinks_of(service, kind.name, name)]

    @router.post(
        "/{sink}/catch-up",
        summary=f"Retry a sink of {kind.one} that is behind now",
        description="The retry would happen later anyway. A completed flow is started for this; a paused, "
        "stopped or failed flow must be resumed or started first. The response has the earlier state.",
        operation_id=f"catchUp{kind.name}",
        responses=failures(403, 404, 409, 422),
    )
    def catch_up_(name: Name, sink: SinkName) -> SinkInfo:
        return sink_info(catch_up(service, kind.name, name, sink))

    return router


def sink_info(found: SinkStanding) -> SinkInfo:
    """The view of a sink."""
    return SinkInfo.model_validate({**asdict(found.standing), **asdict(found)})
