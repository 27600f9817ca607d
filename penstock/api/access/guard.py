"""The guard in front of every route: identifies the caller of a request, and checks permissions."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.access.cookies import Credentials, credentials
from penstock.api.access.refused import RefusedRequests
from penstock.api.access.rules import Matched, Rules
from penstock.api.errors import error_response
from penstock.control.access.access import Access
from penstock.control.access.callers import LOCAL_ADMIN, Caller
from penstock.control.access.refusals import REFUSED
from penstock.control.access.roles import PUBLIC, WORKER, permits
from penstock.errors import Problem

log = structlog.get_logger()

CALLER, MATCHED = "penstock.caller", "penstock.route"
"""Keys in the scope of a request: its caller, or None, and its route with the rule."""

LOOK_S = 2.0
"""Seconds between checks for users that the command line has added, while authentication is off."""

WATCH_S = 5.0
"""Seconds between checks whether the caller of a streaming response is still permitted."""

THREADS = 4
"""Threads for identifying callers, which must not queue behind requests that wait for a pipeline."""

WIRE = "/wire/"
"""Paths for workers, which need a token even while authentication is off."""

CSRF_HEADER = b"x-csrf-token"

_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOG_INS = frozenset({"session.login", "session.setup"})
_FOR_EVERYBODY = ("/ui", "/healthz")

T = TypeVar("T")


class Guard:
    """Passes on requests that their caller is permitted to make, and denies all others."""

    def __init__(self, app: ASGIApp, access: Access, rules: Rules) -> None:
        self.app, self._access, self._rules = app, access, rules
        self._refused = RefusedRequests(access)
        self._threads = CapacityLimiter(THREADS)
        self._looked: float | None = None
        self._look: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or deny it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            if not self._access.on:
                await self._look_for_users()
            if not self._access.on and not scope["path"].startswith(WIRE):
                scope[CALLER] = LOCAL_ADMIN
                refusal, matched = None, self._rules.find(scope) if scope["method"] == "GET" else None
            else:
                matched = self._rules.find(scope)
                scope[CALLER] = await self._caller(scope, matched)
                refusal = _refusal(scope, matched)
        except SQLAlchemyError as error:
            log.warning("registry isn't responding", error=str(error))
            refusal, matched = (503, _REGISTRY_DOWN), None
        if refusal is not None:
            status, problem = refusal
            if status in REFUSED:
                action = matched.rule.action if matched else None
                await self._refused.note(scope, status, scope[CALLER], action)
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await error_response(status, [problem], headers)(scope, receive, send)
            return
        scope[MATCHED] = matched
        if matched is not None and matched.follows:
            await self._followed(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _look_for_users(self) -> None:
        """Check for users that the command line has added; only the first request waits for the check."""
        if self._looked is None:
            await self._run(self._access.refresh)
            self._looked = time.monotonic()
        elif time.monotonic() - self._looked >= LOOK_S:
            self._looked = time.monotonic()
            self._look = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        with contextlib.suppress(SQLAlchemyError):  # the next check may reach the registry again
            await self._run(self._access.refresh)

    async def _caller(self, scope: Scope, matched: Matched | None) -> Caller | None:
        if matched and matched.rule.role == PUBLIC and scope["path"].startswith(_FOR_EVERYBODY):
            return None
        given = credentials(scope)
        if given is None:
            return None
        if (known := self._access.recent(given.secret)) is not None:
            return known
        try:
            return await self._run(lambda: self._asked(given))
        except SQLAlchemyError:
            if matched is None or matched.rule.role != PUBLIC:
                raise
            return None

    def _asked(self, given: Credentials, *, used: bool = True) -> Caller | None:
        if given.is_token:
            return self._access.of_token(given.secret)
        return self._access.of_session(given.secret, used=used)

    async def _followed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with a streaming response, and end it once its caller is no longer permitted."""
        started = ended = False

        async def watched(message: Message) -> None:
            nonlocal started, ended
            started = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        answer = asyncio.ensure_future(self.app(scope, receive, watched))
        try:
            while not (await asyncio.wait({answer}, timeout=WATCH_S))[0]:
                if not await self._still_allowed(scope):
                    break
            else:
                await answer
                return
        finally:
            answer.cancel()
            await asyncio.wait({answer})
        if started and not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _still_allowed(self, scope: Scope) -> bool:
        if scope[CALLER] is LOCAL_ADMIN:
            return not self._access.on
        given = credentials(scope)
        if given is None:
            return False
        try:
            caller = await self._run(lambda: self._asked(given, used=False))
        except SQLAlchemyError:
            return True
        return caller is not None and permits(caller.role, scope[MATCHED].rule.role)

    async def _run(self, ask: Callable[[], T]) -> T:
        return await to_thread.run_sync(ask, limiter=self._threads)


def _refusal(scope: Scope, matched: Matched | None) -> tuple[int, Problem] | None:
    """Why a request is denied, with the status; None if it is permitted."""
    caller: Caller | None = scope[CALLER]
    need = matched.rule.role if matched else "viewer"
    if caller is None:
        return None if need == PUBLIC else (401, _WORKER if need == WORKER else _UNKNOWN)
    if matched is None:
        return None  # the router responds with 404
    if not permits(caller.role, need):
        return (401, _WORKER) if need == WORKER else (403, _forbidden(scope, need, caller))
    if caller.source is not None and need != PUBLIC and matched.params.get("source") != caller.source:
        message = f"this token can only send events to the source '{caller.source}'"
        return 403, Problem(code="forbidden", message=message)
    if caller.csrf and scope["method"] not in _HARMLESS and matched.rule.action not in _LOG_INS:
        given = next((value for name, value in scope["headers"] if name == CSRF_HEADER), b"")
        if not hmac.compare_digest(given, caller.csrf.encode()):
            return 403, _CSRF
    return None


def _forbidden(scope: Scope, need: str, caller: Caller) -> Problem:
    role = "operator" if need == "ingest" else need
    message = f"{scope['method']} {scope['path']} needs the role {role}; you have {caller.role}"
    return Problem(code="forbidden", message=message, hint="an admin can give you the role")


_UNKNOWN = Problem(
    code="unauthorised",
    message="you are not logged in, or your session or token has ended",
    hint="log in, or send a token as `Authorization: Bearer TOKEN`",
)
_WORKER = Problem(
    code="unauthorised",
    message="the token of this worker is invalid or was revoked",
    hint="create one on the server with `penstock worker token`",
)
_CSRF = Problem(
    code="csrf",
    message="the header X-CSRF-Token is missing or wrong",
    hint="send the `csrf` of GET /session with it",
)
_REGISTRY_DOWN = Problem(
    code="registry_down", message="the registry is not responding", hint="try again in a moment"
)
