"""The logs of all flows."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.flow_logs import AtLeast
from penstock.api.params import Moment
from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.graph.layout import key_of
from penstock.control.monitor.log_search import LogQuery, search_logs
from penstock.engine.runtime.flow_log_reader import LogLine


class LogHit(LogLine):
    """A line in the log of a flow, with the flow."""

    key: str = Field(description="Kind and id of the flow, such as `Pipeline/orders`.")
    kind: str
    id: str
    name: str


class LogHits(View):
    """Matching lines of all logs, newest first."""

    lines: list[LogHit]
    complete: bool = Field(description="False if the search took too long and some logs were not searched.")


def log_search_routes(service: Service) -> APIRouter:
    """The route for searching logs."""
    router = APIRouter(prefix="/logs", tags=["overview"])

    @router.get(
        "",
        summary="Search the logs of all flows",
        operation_id="searchLogs",
        responses=failures(422),
    )
    def search(
        text: Annotated[
            str, Query(max_length=1000, description="Only lines with this text, regardless of case.")
        ] = "",
        level: AtLeast = "info",
        flow: Annotated[
            str | None,
            Query(max_length=400, description="Only lines of this flow, such as `Pipeline/orders`."),
        ] = None,
        since: Annotated[
            Moment | None, Query(alias="from", description="Only lines from this time on, ISO 8601.")
        ] = None,
        until: Annotated[
            Moment | None, Query(alias="to", description="Only lines up to this time, ISO 8601.")
        ] = None,
        limit: Annotated[
            int, Query(ge=1, le=2000, description="Maximum number of lines; the newest are returned.")
        ] = 200,
    ) -> LogHits:
        found = search_logs(service, LogQuery(text, level, flow, since, until), limit)
        return LogHits(
            lines=[
                LogHit(
                    **hit.line.model_dump(),
                    key=key_of(hit.kind, hit.id),
                    kind=hit.kind,
                    id=hit.id,
                    name=hit.name,
                )
                for hit in found.lines
            ],
            complete=found.complete,
        )

    return router
