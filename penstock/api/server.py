"""The HTTP server: listens, serves until a signal, and ends without waiting for those who only watch."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from penstock.errors import PenstockError, Problem
from penstock.settings import Settings

GRACE_S = 5
"""How long an end waits for requests that are being answered."""

OnReady = Callable[[str], object]


class Server(uvicorn.Server):
    """A server on the address of the settings. The address is taken when it is made."""

    def __init__(self, app: FastAPI, settings: Settings, on_ready: OnReady | None = None) -> None:
        self._app, self._on_ready = app, on_ready
        self._listener = _listen(settings.host, settings.port)
        self.url = _url(settings.host, self._listener.getsockname()[1])
        debug = settings.log.level == "debug"
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="debug" if debug else "warning",
                access_log=debug,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal or `stop`."""
        super().run(sockets=sockets or [self._listener])

    def stop(self) -> None:
        """End; to be called from another thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End. Those who follow events would stay for ever, so they are sent away first."""
        self._app.state.feed.close()
        self._app.state.followers.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on a signal. Unlike uvicorn's, this does not raise it again: the caller has to clean up."""
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


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=2048)
    except socket.gaierror:
        raise PenstockError(
            Problem(
                code="unknown_host",
                message=f"there is no address '{host}' to listen on",
                hint="choose another one with --host or PENSTOCK_HOST",
            )
        ) from None
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        what = "is already in use" if taken else f"cannot be used: {error.strerror}"
        raise PenstockError(
            Problem(
                code="port_in_use" if taken else "cannot_listen",
                message=f"port {port} on {host} {what}",
                hint="choose another one with --port or PENSTOCK_PORT, or 0 for any that is free",
            )
        ) from None


def _url(host: str, port: int) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    if address.is_unspecified:  # every address of this machine: name one that a browser can open
        return f"http://127.0.0.1:{port}"
    return f"http://[{host}]:{port}" if address.version == 6 else f"http://{host}:{port}"
