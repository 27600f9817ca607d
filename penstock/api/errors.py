"""The envelope of all errors: the fields of the first problem, and the list of all problems."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DatabaseError, OperationalError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.control.registry.faults import registry_problem
from penstock.disk import refused_by_disk
from penstock.errors import PenstockError, Problem

log = structlog.get_logger()

RETRY_AFTER_S = 2

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

Responses = dict[int | str, dict[str, Any]]

_MEANINGS = {
    400: "The body is missing, or neither JSON nor YAML.",
    401: "The request has no session or token, or one that has ended.",
    403: "The role of the caller does not include it, or the request was made by a page of another site.",
    404: "Not found.",
    409: "The current state doesn't allow this request.",
    412: "`If-Match` is not the current revision.",
    408: "The request timed out.",
    413: "The body is too large.",
    415: "The media type or encoding of the body is not supported.",
    421: "`Host` is not a name of this server: see the setting `auth.hosts`.",
    422: "The request is not valid: a list of all problems.",
    429: "The stream is full and drops new events, counted; retry after `Retry-After` seconds.",
    500: "Internal error; the message has the id of the log entry.",
    503: "Temporarily unavailable: retry after `Retry-After` seconds.",
}


class ErrorBody(Problem):
    """An error: the first problem, and the list of all problems."""

    errors: list[Problem]


def failures(*statuses: int) -> Responses:
    """The declared error responses of a route."""
    return {status: {"model": ErrorBody, "description": _MEANINGS[status]} for status in statuses}


def error_response(
    status: int, problems: Sequence[Problem], headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """The error response for problems, with `more` fields if the route declares them."""
    body = ErrorBody(**problems[0].model_dump(), errors=list(problems))
    retry = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    return JSONResponse({**body.model_dump(), **more}, status, {**retry, **(headers or {})})


def retry_header(error: PenstockError) -> dict[str, str]:
    """The `Retry-After` header of a rejected request, if the error has a delay."""
    wait = getattr(error, "retry_after", None)
    return {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}


def refusal(error: PenstockError) -> JSONResponse:
    """The response to a rejected request."""
    return error_response(error.status, error.problems, retry_header(error))


def install(app: FastAPI) -> None:
    """Convert every error of the app to the envelope."""

    @app.exception_handler(PenstockError)
    def refused(request: Request, error: PenstockError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    def bad_parameters(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, [_parameter_problem(details) for details in error.errors()])

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 405:
            return _wrong_method(request)
        return error_response(error.status_code, [_http_problem(request, error)], error.headers)

    @app.exception_handler(DatabaseError)
    @app.exception_handler(TimeoutError)
    def registry_down(request: Request, error: Exception) -> JSONResponse:
        problem = registry_problem(error)
        if problem is None:
            if not isinstance(error, OperationalError | TimeoutError):
                raise error
            message, hint = "the registry is not responding", "try again in a moment"
            problem = Problem(code="registry_down", message=message, hint=hint)
        log.warning("registry is not responding", error=str(error))
        return error_response(503, [problem])

    @app.exception_handler(OSError)
    def disk_failed(request: Request, error: OSError) -> JSONResponse:
        found = refused_by_disk(error)
        if found is None:
            raise error
        log.error("the disk has failed a request", path=request.url.path, error=str(error))
        return refusal(found)

    app.add_middleware(LastResort)


class LastResort:
    """Responds to an unexpected error with an id, and logs the traceback under that id."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            if scope["type"] != "http":
                raise
            error_id = uuid.uuid4().hex[:12]
            log.exception("request failed", id=error_id, method=scope["method"], path=scope["path"])
            if not started:
                await error_response(500, [_internal(error_id)])(scope, receive, send)


def _internal(error_id: str) -> Problem:
    return Problem(
        code="internal_error",
        message=f"internal error; see {error_id} in the log",
        hint="if this happens again, report it with those log lines",
    )


def _parameter_problem(details: Mapping[str, Any]) -> Problem:
    _, *place = details["loc"]
    path = ".".join(str(part) for part in place)
    message = str(details["msg"]).replace("Input should be", "must be", 1)
    return Problem(code="invalid_parameter", message=message, path=path)


def _http_problem(request: Request, error: HTTPException) -> Problem:
    path = request.url.path
    if error.status_code == 404:
        hint = f"remove the trailing '/': {path.rstrip('/')}" if path.endswith("/") else "see /docs"
        return Problem(code="not_found", message=f"there is nothing at {path}", hint=hint)
    return Problem(code="http_error", message=str(error.detail))


def _wrong_method(request: Request) -> JSONResponse:
    # Starlette would list the methods of only one of the routes of a path.
    possible = [method for method in _METHODS if _served({**request.scope, "method": method})]
    problem = Problem(
        code="method_not_allowed",
        message=f"{request.method} is not supported at {request.url.path}",
        hint=f"use {' or '.join(possible)}",
    )
    return error_response(405, [problem], {"Allow": ", ".join(possible)})


def _served(scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in scope["app"].routes)
