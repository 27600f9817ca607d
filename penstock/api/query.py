"""SQL queries over streams, and saved queries."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from penstock.api.access.parameters import Who
from penstock.api.access.sessions import Body
from penstock.api.access.trail import note_of
from penstock.api.errors import failures
from penstock.api.views import View
from penstock.control.access.users import LOCAL
from penstock.control.documents.service import Service
from penstock.control.questions.saved_queries import SavedQueries
from penstock.control.questions.sql_query import SqlQueries
from penstock.engine.runtime.sql_queries import QueryResult

_DESCRIPTION = """\
Spark SQL over the events in streams. Tables are the ids of streams; quote an id with a dot or a dash in
backquotes. A raw stream has the columns `value`, `key` and `headers`, a typed stream those of its schema,
`_key` and `_headers`; both have `_offset` and `_time`. Queries are read-only and can access only streams.
They run in a process separate from the flows, two at a time; further queries get 503."""


SQL = Field(min_length=1, max_length=100_000, description="One SELECT.")


class QueryBody(BaseModel):
    """A query and its limits."""

    model_config = ConfigDict(extra="forbid")

    sql: str = SQL
    limit: int = Field(default=1000, ge=1, le=10_000, description="Maximum number of rows to return.")
    timeout_ms: int = Field(
        default=30_000, ge=1, le=600_000, description="The query is cancelled after this many milliseconds."
    )
    id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="An id of your choice, by which the query can be cancelled while it runs.",
    )


class SavedQueryBody(Body):
    """A query to save."""

    sql: str = Field(min_length=1, max_length=100_000, pattern=r"^[^\x00]+$", description="One SELECT.")


class SavedQueryView(View):
    """A saved query."""

    name: str
    sql: str
    user: str | None = Field(description="Who saved it last; null if there was no user.")
    updated_at: datetime


class SavedQueryList(View):
    """Saved queries, by name."""

    items: list[SavedQueryView]


QueryId = Annotated[str, Path(description="The `id` of the query.", min_length=1, max_length=64)]
QueryName = Annotated[
    str, Path(description="Name of the saved query, without `/`.", pattern=r"^[^/\x00-\x1f\x7f]{1,128}$")
]


def query_routes(service: Service) -> APIRouter:
    """The routes for queries."""
    router = APIRouter(tags=["query"])
    queries, saved = SqlQueries(service), SavedQueries(service.registry)

    @router.post(
        "/query",
        summary="Query streams with SQL",
        description=_DESCRIPTION,
        operation_id="query",
        responses=failures(400, 403, 408, 409, 422),
    )
    def query(body: QueryBody) -> QueryResult:
        return queries.ask(body.sql, body.limit, body.timeout_ms, body.id)

    @router.delete(
        "/query/{id}",
        summary="Cancel a running query",
        description="The query then responds with 409 and the code `query_cancelled`.",
        operation_id="cancelQuery",
        status_code=204,
        responses=failures(403, 404, 422),
    )
    def cancel(id: QueryId) -> None:  # noqa: A002
        queries.cancel(id)

    @router.get("/queries", summary="List saved queries", operation_id="listQueries")
    def list_() -> SavedQueryList:
        return SavedQueryList(items=[SavedQueryView.model_validate(vars(each)) for each in saved.all()])

    @router.put(
        "/queries/{name}",
        summary="Save a query",
        description="Replaces the saved query of the same name. The query is not checked: it can name "
        "streams that don't exist yet.",
        operation_id="saveQuery",
        responses=failures(400, 403, 409, 422),
    )
    def save(name: QueryName, body: SavedQueryBody, caller: Who, request: Request) -> SavedQueryView:
        made = saved.save(name, body.sql, None if caller.name == LOCAL else caller.name)
        note_of(request).after = {"sql": made.sql}
        return SavedQueryView.model_validate(vars(made))

    @router.delete(
        "/queries/{name}",
        summary="Delete a saved query",
        operation_id="deleteQuery",
        status_code=204,
        responses=failures(403, 404, 422),
    )
    def delete(name: QueryName) -> None:
        saved.delete(name)

    return router
