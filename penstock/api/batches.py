"""The batches of flows."""

from typing import Annotated

from fastapi import APIRouter, Query

from penstock.api.errors import failures
from penstock.api.kinds import Kind
from penstock.api.params import Name
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.events.batches import batches_of
from penstock.engine.runtime.batch_log import BatchLine

_DESCRIPTION = "The last batches and failed attempts, newest first. About 3,000 are kept."


class BatchesView(View):
    """The last batches of a flow, newest first."""

    batches: list[BatchLine]


def batch_routes(service: Service, kind: Kind) -> APIRouter:
    """The route of a runnable kind for batches."""
    router = APIRouter(prefix=f"/{kind.place}/{{name}}/batches", tags=[kind.place])

    @router.get(
        "",
        summary=f"List the batches of {kind.one}",
        description=_DESCRIPTION,
        operation_id=f"list{kind.name}Batches",
        responses=failures(404, 409, 422),
    )
    def batches(
        name: Name,
        limit: Annotated[int, Query(ge=1, le=3000, description="Maximum number of batches.")] = 200,
    ) -> BatchesView:
        return BatchesView(batches=batches_of(service, kind.name, name, limit))

    return router
