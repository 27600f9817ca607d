"""Keeps other sites' pages from giving orders through the browser of somebody who can reach this server."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.errors import error_response
from penstock.errors import Problem

_HARMLESS = {"GET", "HEAD", "OPTIONS"}


class SameOrigin:
    """Refuses what a page of another origin sends and would change something.

    Bodies are read whatever their Content-Type says, so a browser asks nobody before it sends one. What is
    no browser sends neither header and is let through.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in _HARMLESS and _foreign(Headers(scope=scope)):
            problem = Problem(
                code="foreign_origin",
                message="a page of another site may not change anything here",
                hint="a proxy in front of Penstock has to pass the Host header on",
            )
            await error_response(403, [problem])(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _foreign(headers: Headers) -> bool:
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
