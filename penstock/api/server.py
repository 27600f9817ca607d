"""The HTTP server: listens, serves until a signal, and shuts down without waiting for followers."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from penstock.api.entrance import Entrance
from penstock.api.listening import listen, url_of
from penstock.api.protocol import BoundedConfig
from penstock.api.traffic import Traffic
from penstock.control.questions.addresses import lonely_key
from penstock.errors import Invalid
from penstock.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

GRACE_S = 5
"""Seconds that a shutdown waits for requests in progress."""

OnReady = Callable[[str], object]


class Server(uvicorn.Server):
    """A server on `listener`, or else on a new socket at the address of the settings."""

    def __init__(
        self,
        app: FastAPI | Entrance,
        settings: Settings,
        on_ready: OnReady | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self._app, self._on_ready = app, on_ready
        if settings.tls.key is not None and settings.tls.certificate is None:
            raise Invalid(lonely_key("tls"))
        self._listener = listener or listen(settings.host, settings.port)
        self.url = url_of(settings.host, self._listener, secure=settings.tls.certificate is not None)
        debug = settings.log.level == "debug"
        self.traffic = Traffic(settings.limits)
        super().__init__(
            BoundedConfig(
                app,
                self.traffic,
                log_config=None,
                log_level="debug" if debug else "warning",
                access_log=debug,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
                timeout_keep_alive=settings.limits.idle_ms / 1000,
                ssl_certfile=settings.tls.certificate,
                ssl_keyfile=settings.tls.key,
                # By default uvicorn trusts every client on this machine about the origin of a request.
                proxy_headers=bool(settings.auth.proxies),
                forwarded_allow_ips=settings.auth.proxies,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal or `stop`."""
        super().run(sockets=sockets or [self._listener])

    def stop(self) -> None:
        """Request a shutdown; must be called from another thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving."""
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down. Followers would stay connected forever, so they are disconnected first."""
        if isinstance(self._app, Entrance):
            self._app.close()
        else:
            self._app.state.feed.close()
            self._app.state.followers.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down on a signal. Unlike uvicorn's, doesn't raise it again: the caller has to clean up."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        earlier = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)
