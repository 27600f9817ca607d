"""The web app: the files that its build wrote, and the way of a browser to them."""

from __future__ import annotations

import mimetypes
import os
import stat
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import penstock
from penstock.api.accept import prefers_html, quality
from penstock.api.errors import error_response
from penstock.api.kinds import KINDS
from penstock.errors import Problem

BUILT = Path(penstock.__file__).parent / "ui"
"""Where `make web` writes the app; a wheel carries it."""

HASHED = "assets/"
"""Below it every file has its checksum in its name, so it never changes, and a missing one is no page."""

_HEADERS = {
    # Styles: the components write theirs into the page. Workers: editors start theirs from a blob.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

_PACKED = (("br", ".br"), ("gzip", ".gz"), (None, ""))

_SCREENS = frozenset({"workers", "settings", "topology", *(kind.place for kind in KINDS)})
_WITH_NAMES = frozenset(kind.place for kind in KINDS)

_NOT_BUILT = Problem(
    code="no_web_app",
    message="the web app is not built",
    hint="run `make web` in the clone of the repository; an installed wheel has it",
)
_PAGE = """\
<!doctype html><html lang=en><meta charset=utf-8><title>Penstock</title>
<meta name=viewport content="width=device-width">
<style>:root { color-scheme: light dark } body { font: 16px/1.6 system-ui, sans-serif; max-width: 36rem;
margin: 15vh auto; padding: 0 1rem }</style>
<h1>The web app is not built</h1>
<p>This Penstock runs from a clone of its repository. Run <code>make web</code> there, then load this page
again.</p><p>The REST API is here all the same: <a href=/docs>its description</a>.</p></html>
"""

# What a machine's own table says of scripts may be wrong, and browsers would refuse to run them.
mimetypes.add_type("text/javascript", ".js")


def ui_routes(directory: Path) -> APIRouter:
    """The app under /ui: its files, and its page for every other path, which the app itself understands."""
    router = APIRouter(include_in_schema=False)
    files = _Files(directory)

    @router.api_route("/ui", methods=["GET", "HEAD"])
    @router.api_route("/ui/{path:path}", methods=["GET", "HEAD"])
    def ui(request: Request, path: str = "") -> Response:
        response = files.find(path, request) or _missing(path, request)
        response.headers.update(_HEADERS)
        return response

    return router


class _Files(StaticFiles):
    """Files of one directory and nothing outside it, packed if they are there packed and the client can."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, check_dir=False)

    def find(self, path: str, request: Request) -> Response | None:
        """The file at a path, or else the page of the app."""
        if found := self._packed(path, request):
            fixed = path.startswith(HASHED)
            found.headers["Cache-Control"] = "public, max-age=31536000, immutable" if fixed else "no-cache"
            return found
        return None if path.startswith(HASHED) or path == "index.html" else self.find("index.html", request)

    def _packed(self, path: str, request: Request) -> Response | None:
        accepted = request.headers.get("accept-encoding", "")
        for encoding, suffix in _PACKED:
            if encoding and not quality(accepted, encoding, "*"):
                continue
            if found := self._file(path + suffix):
                response = self.file_response(*found, request.scope)
                response.headers.add_vary_header("Accept-Encoding")
                if encoding:
                    response.headers["Content-Encoding"] = encoding
                return response
        return None

    def _file(self, path: str) -> tuple[str, os.stat_result] | None:
        try:
            full, found = self.lookup_path(path)
        except (OSError, ValueError):  # no name that a file could have
            return None
        return (full, found) if found and stat.S_ISREG(found.st_mode) else None


def _missing(path: str, request: Request) -> Response:
    if path.startswith(HASHED):
        raise HTTPException(404)
    if prefers_html(request.headers):
        return HTMLResponse(_PAGE, 503)
    return error_response(503, [_NOT_BUILT])


class Doorman:
    """Shows a browser that opens a path of the API the screen of the same name.

    Everybody else, also the app itself when it asks for JSON, gets the API's answer.
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
