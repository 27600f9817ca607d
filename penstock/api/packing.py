"""Compression of large responses for clients that support it."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

SMALLEST = 1024
"""Minimum response size in bytes; compressing less is not worthwhile."""

LEVEL = 1
"""The fastest level compresses JSON well, and users wait for the response."""


class Packing(GZipMiddleware):
    """Compresses responses, except server-sent events, which have to arrive at once."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, minimum_size=SMALLEST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and compress its response unless it is small or already compressed."""
        if scope["type"] != "http" or _elsewhere(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _elsewhere(method: str, path: str) -> bool:
    """Whether it is a busy path with small responses, or the web app, whose files are compressed at build."""
    if method == "POST":
        return path.startswith("/ingest/") or path.endswith("/events")
    return path == "/ui" or path.startswith("/ui/")
