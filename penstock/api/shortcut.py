"""The fast path of events: past the framework's routing, straight to the code of their routes."""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.errors import refusal
from penstock.api.ingest import LONGEST_SOURCE, LONGEST_STREAM, NO_OPTIONS, Ingest, Target
from penstock.errors import PenstockError

SOURCES, STREAMS, EVENTS = "/ingest/", "/streams/", "/events"


class Shortcut:
    """Handles requests without parameters that append events to cached streams.

    The routes call the same functions, and handle all other requests. Through the framework, a single event
    takes several times as long.
    """

    def __init__(self, app: ASGIApp, ingest: Ingest) -> None:
        self.app, self._ingest = app, ingest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or pass it on."""
        target = self._target(scope)
        if target is None:
            await self.app(scope, receive, send)
            return
        try:
            answer = await self._ingest.take(Request(scope, receive), target, NO_OPTIONS)
        except PenstockError as error:
            answer = refusal(error)
        await answer(scope, receive, send)

    def _target(self, scope: Scope) -> Target | None:
        """The streams of a request, if it can take the fast path."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return None
        path: str = scope["path"]
        if path.startswith(SOURCES):
            source = path.removeprefix(SOURCES)
            return self._ingest.known_source(source) if len(source) <= LONGEST_SOURCE else None
        if path.startswith(STREAMS) and path.endswith(EVENTS):
            name = path[len(STREAMS) : -len(EVENTS)]
            return self._ingest.known_stream(name) if len(name) <= LONGEST_STREAM else None
        return None
