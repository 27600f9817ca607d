"""Keeps pages of other sites from sending requests through the browser of a user of this server."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.errors import error_response
from penstock.errors import Problem

_HARMLESS = {"GET", "HEAD", "OPTIONS"}
_OF_BROWSERS = frozenset({b"sec-fetch-site", b"origin"})


class SameOrigin:
    """Refuses what a page of another origin sends and would change something.

    Bodies are read whatever their Content-Type says, so a browser sends one without a preflight request.
    Other clients send neither header and are let through.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in _HARMLESS and _foreign(scope):
            problem = Problem(
                code="foreign_origin",
                message="requests from pages of another origin are not allowed",
                hint="a proxy in front of Penstock must forward the Host header",
            )
            await error_response(403, [problem])(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _foreign(scope: Scope) -> bool:
    if _OF_BROWSERS.isdisjoint([name for name, _ in scope["headers"]]):
        return False
    headers = Headers(scope=scope)
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
