"""The audit trail of changes over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.access.guard import CALLER
from penstock.api.access.rules import Matched, Rules
from penstock.control.access.access import Access
from penstock.control.access.audit import Action
from penstock.control.access.callers import Caller
from penstock.control.access.refusals import REFUSED, Refusal
from penstock.control.registry.content import same
from penstock.control.registry.records import Record
from penstock.control.registry.store import Registry
from penstock.specs.documents import KINDS

log = structlog.get_logger()

NOTE = "penstock.audit"
"""The key of the note in the scope of a request."""

THREADS = 4
"""Threads for reading documents before and after a change, and for writing entries."""

BUNDLE = "bundle.import"

State = dict[str, Any]
T = TypeVar("T")


@dataclass
class Note:
    """Details of a change, set by its route: the user, the target, and its state before and after."""

    target: str | None = None
    user: str | None = None
    via: str | None = None
    before: State | None = None
    after: State | None = None


def note_of(request: Request) -> Note:
    """The note of a request, for its route to fill in."""
    found: Note = request.scope.setdefault(NOTE, Note())
    return found


class Trail:
    """Writes an entry for each request that has an action, whether it succeeds or not."""

    def __init__(self, app: ASGIApp, access: Access, rules: Rules, registry: Registry) -> None:
        self.app, self._access, self._rules, self._registry = app, access, rules, registry
        self._threads = CapacityLimiter(THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and write its entry before the response is sent."""
        matched = None
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            matched = self._rules.find(scope)
        if matched is None or matched.rule.action is None:
            await self.app(scope, receive, send)
            return
        found, note = matched, Note()
        scope[NOTE] = note
        before = await self._run(lambda: self._states(found, found.params.get("name")))

        async def recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._run(lambda: self._record(scope, found, note, before, message))
            await send(message)

        await self.app(scope, receive, recorded)

    def _record(
        self, scope: Scope, matched: Matched, note: Note, before: dict[str, State], message: Message
    ) -> None:
        caller: Caller | None = scope[CALLER]
        status: int = message["status"]
        after: dict[str, State] = {}
        if status < 400:
            after = self._states(matched, _made(message) or matched.params.get("name"))
        done = _actions(matched, note, before, after, status)
        user = note.user or (caller.name if caller else None)
        via = note.via or (caller.via if caller else None)
        address = scope["client"][0] if scope.get("client") else None
        if status in REFUSED:
            for action in done:
                self._access.refusals.add(Refusal(action.name, action.target, user, via, address, status))
            return
        try:
            self._access.audit.record_all(done, user=user, via=via, address=address, status=status)
        except SQLAlchemyError as error:  # the change was made: the response must report it
            log.error("the audit trail cannot be written", action=matched.rule.action, error=str(error))

    def _states(self, matched: Matched, name: str | None) -> dict[str, State]:
        """The current state of the documents of a request, by their names in the audit trail."""
        try:
            if matched.rule.action == BUNDLE:
                pages = [self._registry.list(kind, limit=None) for kind in KINDS]
                return {_place(record): _state(record) for page in pages for record in page.items}
            record = self._registry.find(matched.rule.kind, name) if matched.rule.kind and name else None
        except SQLAlchemyError:  # the route will encounter the error itself
            return {}
        return {} if record is None else {_place(record): _state(record)}

    async def _run(self, do: Callable[[], T]) -> T:
        return await to_thread.run_sync(do, limiter=self._threads)


def _actions(
    matched: Matched, note: Note, before: dict[str, State], after: dict[str, State], status: int
) -> list[Action]:
    action, kind = str(matched.rule.action), matched.rule.kind
    if action == BUNDLE:
        places = sorted({*before, *after}) if status < 400 else []
        changed = [place for place in places if not same(before.get(place), after.get(place))]
        whole = Action(action, "bundle", after={"changed": changed})
        return [whole, *(_document_action(place, before.get(place), after.get(place)) for place in changed)]
    if kind is None:
        target = note.target or "/".join([action.partition(".")[0], *map(str, matched.params.values())])
        return [Action(action, target, note.before, note.after)]
    named = f"{kind.lower()}/{matched.params['name']}" if "name" in matched.params else kind.lower()
    place = next(iter([*after, *before]), named)
    old, new = before.get(place), after.get(place)
    if not action.startswith(f"{kind.lower()}.") or action.startswith("stream.move"):
        # Not a change of the document: record its status, and the other parameters of the path.
        details = {name: value for name, value in matched.params.items() if name != "name"}
        old, new = _status(old), {**(_status(new) or {}), **details} or None
    return [Action(action, place, old, new if status < 400 else None)]


def _document_action(place: str, before: State | None, after: State | None) -> Action:
    verb = "create" if before is None else "delete" if after is None else "update"
    return Action(f"{place.partition('/')[0]}.{verb}", place, before, after)


def _made(message: Message) -> str | None:
    """The name of a document that a request has created."""
    location = Headers(raw=message.get("headers", [])).get("location") if message["status"] == 201 else None
    return unquote(location.rpartition("/")[2]) if location else None


def _place(record: Record) -> str:
    return f"{record.kind.lower()}/{record.id}"


def _state(record: Record) -> State:
    status = {} if record.flow is None else {"status": record.flow.desired}
    return {**record.document, **status, "revision": record.revision}


def _status(state: State | None) -> State | None:
    return {"status": state["status"]} if state and "status" in state else None
