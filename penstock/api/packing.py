"""Large answers go out packed to those who can read them so."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

SMALLEST = 1024
"""Bytes; less is not worth the work."""

LEVEL = 1
"""JSON is packed well by the quickest level, and people wait for the answer."""


class Packing(GZipMiddleware):
    """Packs answers. Server-sent events are left alone, since each has to arrive at once."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, minimum_size=SMALLEST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and pack its answer unless it is small or packed anyway."""
        if scope["type"] != "http" or _elsewhere(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _elsewhere(method: str, path: str) -> bool:
    """Whether it is a busy path with small answers, or the web app, which was packed when it was built."""
    if method == "POST":
        return path.startswith("/ingest/") or path.endswith("/events")
    return path == "/ui" or path.startswith("/ui/")
