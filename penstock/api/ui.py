"""The web app: its built files, and redirects of browsers to the app."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.accept import prefers_html
from penstock.api.errors import error_response
from penstock.api.kinds import KINDS
from penstock.api.web_files import HASHED, HEADERS, WebFiles
from penstock.errors import Problem

_SCREENS = frozenset(
    {"workers", "settings", "topology", "users", "tokens", "audit", *(kind.place for kind in KINDS)}
)
_WITH_NAMES = frozenset(kind.place for kind in KINDS)

_NOT_BUILT = Problem(
    code="no_web_app",
    message="the web app is not built",
    hint="run `make web` in the clone of the repository; wheels include the web app",
)
_PAGE = """\
<!doctype html><html lang=en><meta charset=utf-8><title>Penstock</title>
<meta name=viewport content="width=device-width">
<style>:root { color-scheme: light dark } body { font: 16px/1.6 system-ui, sans-serif; max-width: 36rem;
margin: 15vh auto; padding: 0 1rem }</style>
<h1>The web app is not built</h1>
<p>This Penstock runs from a clone of its repository. Run <code>make web</code> there, then load this page
again.</p><p>The REST API is available: <a href=/docs>reference</a>.</p></html>
"""


def ui_routes(directory: Path) -> APIRouter:
    """The app under /ui: its files, and its page for every other path, which the app itself routes."""
    router = APIRouter(include_in_schema=False)
    files = WebFiles(directory)

    @router.api_route("/ui", methods=["GET", "HEAD"])
    @router.api_route("/ui/{path:path}", methods=["GET", "HEAD"])
    def ui(request: Request, path: str = "") -> Response:
        response = files.find(path, request) or _missing(path, request)
        response.headers.update(HEADERS)
        return response

    return router


def _missing(path: str, request: Request) -> Response:
    if path.startswith(HASHED):
        raise HTTPException(404)
    if prefers_html(request.headers):
        return HTMLResponse(_PAGE, 503)
    return error_response(503, [_NOT_BUILT])


class Doorman:
    """Redirects a browser that opens a path of the API to the screen of the same name.

    All other clients, including the app itself when it requests JSON, get the API's response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect the request, or pass it on."""
        if scope["type"] != "http" or scope["method"] != "GET" or not _has_screen(scope["path"]):
            await self.app(scope, receive, send)
            return

        async def varied(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).add_vary_header("Accept")
            await send(message)

        app = _redirect(scope) if prefers_html(Headers(scope=scope)) else self.app
        await app(scope, receive, varied)


def _has_screen(path: str) -> bool:
    place, *rest = path[1:].split("/")
    return path == "/" or (place in _SCREENS and not rest) or (place in _WITH_NAMES and len(rest) == 1)


def _redirect(scope: Scope) -> RedirectResponse:
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"/ui{quote(scope['path'])}" + (f"?{query}" if query else ""))
