"""Questions about streams in SQL."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.errors import failures
from penstock.control.documents.service import Service
from penstock.control.questions.sql_query import ask
from penstock.engine.runtime.sql_queries import QueryResult

_DESCRIPTION = """\
Spark SQL over the events in streams. Tables are the ids of streams; quote an id with a dot or a dash in
backquotes. A raw stream has the columns `value`, `key` and `headers`, a typed stream those of its schema,
`_key` and `_headers`; both have `_offset` and `_time`. Queries are read-only and can access only streams.
They run in a process separate from the flows, two at a time; further queries get 503."""


class QueryBody(BaseModel):
    """A query and its limits."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=100_000, description="One SELECT.")
    limit: int = Field(default=1000, ge=1, le=10_000, description="Maximum number of rows to return.")
    timeout_ms: int = Field(
        default=30_000, ge=1, le=600_000, description="The query is cancelled after this many milliseconds."
    )


def query_routes(service: Service) -> APIRouter:
    """The route for queries."""
    router = APIRouter(tags=["query"])

    @router.post(
        "/query",
        summary="Query streams with SQL",
        description=_DESCRIPTION,
        operation_id="query",
        responses=failures(400, 403, 408, 422),
    )
    def query(body: QueryBody) -> QueryResult:
        return ask(service, body.sql, body.limit, body.timeout_ms)

    return router
