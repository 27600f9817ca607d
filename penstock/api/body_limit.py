"""Rejects bodies that are too large before they fill memory, for every route."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.bodies import too_large
from penstock.api.errors import refusal

OWN_LIMITS = ("/ingest/", "/wire/")
"""Routes with their own limits; `/streams/NAME/events` is another."""


class BodyLimit:
    """Accepts bodies of up to `limit` bytes."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if (
            scope["type"] != "http"
            or scope["path"].startswith(OWN_LIMITS)
            or scope["path"].endswith("/events")
        ):
            await self.app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if int(declared) > self.limit:
            await refusal(too_large(self.limit))(scope, receive, send)
            return
        left = self.limit

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_large(self.limit)
            return message

        await self.app(scope, counted, send)
