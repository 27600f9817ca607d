"""The connection test of a connector."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import failures
from penstock.connectors.probe import Probe
from penstock.control.documents.service import Service
from penstock.control.questions.connections import ProbeRequest
from penstock.errors import NotFound, Problem, did_you_mean
from penstock.specs.catalog import catalog

_DESCRIPTION = """\
A process separate from the flows tries to connect without changing anything and responds within seconds.
`problems` is empty on success. `${NAME}` in the spec is read from the environment of that process."""


class CheckBody(BaseModel):
    """A connector, as in a document."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["source", "sink"] = Field(
        description="Whether to test the source or the sink of this type."
    )
    spec: dict[str, Any] = Field(description="Fields of the connector; `type` may be omitted.")


def connection_routes(service: Service) -> APIRouter:
    """The route for connection tests."""
    router = APIRouter(tags=["catalogue"])

    @router.post(
        "/connectors/{type}/check",
        summary="Test the connection of a connector",
        description=_DESCRIPTION,
        operation_id="checkConnector",
        responses=failures(400, 404, 408, 422),
    )
    def check(
        connector_type: Annotated[str, Path(alias="type", description="The type, as used in documents.")],
        body: CheckBody,
    ) -> Probe:
        classes = catalog(body.role).classes
        if connector_type not in classes:
            message = f"there is no {body.role} of type '{connector_type}'"
            hint = did_you_mean(connector_type, classes)
            raise NotFound(Problem(code="not_found", message=message, hint=hint))
        request = ProbeRequest(role=body.role, spec={**body.spec, "type": connector_type})
        no_worker = Problem(
            code="no_worker",
            message="no worker is ready to test a connection",
            hint="wait a moment and try again",
        )
        return service.judge.ask(lambda worker: service.rpc.probe(worker, request), no_worker, by="apart")

    return router
