"""The server while it loads: the web app is served at once, and requests to the API wait until it is loaded.

Has few imports, so that a browser gets its page while the API, with its hundreds of models, is still being
loaded.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from penstock.api.accept import prefers_html
from penstock.api.web_files import BUILT, HEADERS, WebFiles
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

UI = "/ui/"

START_S = 60.0
"""Seconds within which a server must start serving; otherwise it has failed."""

_CLOSED = Problem(code="shutting_down", message="the server is shutting down").model_dump()


class Entrance:
    """An ASGI application that serves only the files of the web app until `open` passes it the API."""

    def __init__(self, ui: Path = BUILT) -> None:
        self.app: FastAPI | None = None
        self._files = WebFiles(ui)
        self._lifespans = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving = threading.Event()
        self._opened = asyncio.Event()

    def open(self, app: FastAPI) -> None:
        """Pass every request on to `app` from now on. Must not be called from the server's thread."""
        if not self._serving.wait(START_S) or self._loop is None:
            raise PenstockError(Problem(code="server_failed", message="the server has not started"))
        asyncio.run_coroutine_threadsafe(self._open(app), self._loop).result()

    def close(self) -> None:
        """Release all waiting requests, because the server is stopping. Must be called in its event loop."""
        if self.app is None:
            self._opened.set()
        else:
            self.app.state.feed.close()
            self.app.state.followers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self.app is None:
            answer = self._early(scope) if scope["type"] == "http" else None
            if answer is not None:
                await answer(scope, receive, send)
                return
            await self._opened.wait()
        app = self.app or JSONResponse({**_CLOSED, "errors": [_CLOSED]}, 503)
        await app(scope, receive, send)

    async def _open(self, app: FastAPI) -> None:
        await self._lifespans.enter_async_context(app.router.lifespan_context(app))
        self.app = app
        self._opened.set()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        self._serving.set()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._lifespans.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    def _early(self, scope: Scope) -> Response | None:
        """The response to a request that doesn't need the API, else None."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return None
        if path == "/healthz":
            return JSONResponse({"status": "ok"})
        if path == "/" and prefers_html(Headers(scope=scope)):
            return RedirectResponse(UI)
        if not f"{path}/".startswith(UI):
            return None
        found = self._files.find(path.removeprefix("/ui").removeprefix("/"), Request(scope))
        if found is not None:
            found.headers.update(HEADERS)
        return found
