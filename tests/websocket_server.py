"""A WebSocket server that sends what a test gives it, and can be stopped and started."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from tests.servers import free_port

TOKEN = "right"


class Feed:
    """A server on a port of its own, which it keeps over an outage.

    It sends each message once, to whoever has subscribed: what was put before is sent then.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.waiting: queue.SimpleQueue[str | bytes] = queue.SimpleQueue()
        self.subscribed: list[str | bytes] = []
        """The first message of each connection."""
        self.protocols: list[str | None] = []
        self._connections: set[ServerConnection] = set()
        self._server: Server | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def put(self, message: str | bytes) -> None:
        self.waiting.put(message)

    def start(self) -> None:
        self._server = serve(
            self._talk,
            "127.0.0.1",
            self.port,
            process_request=self._judge,
            select_subprotocol=lambda _, offered: Subprotocol("v2") if "v2" in offered else None,
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and close those that are open."""
        if self._server is not None:
            self._server.shutdown()
            self._server = None
        self.disconnect()

    def disconnect(self, code: int = 1012) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            connection.close(code, "restart")

    def _judge(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/closed" and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return connection.respond(HTTPStatus.UNAUTHORIZED, "log in")
        if request.path == "/nothing":
            return connection.respond(HTTPStatus.NOT_FOUND, "nothing here")
        return None

    def _talk(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        self.protocols.append(connection.subprotocol)
        try:
            self.subscribed.append(connection.recv())
            while True:
                with contextlib.suppress(queue.Empty):
                    connection.send(self.waiting.get(timeout=0.02))
                with contextlib.suppress(TimeoutError):
                    connection.recv(timeout=0)  # finds out whether the connection is closed
        except ConnectionClosed:
            pass
        finally:
            self._connections.discard(connection)


@contextmanager
def websocket_feed() -> Iterator[Feed]:
    """A server that lives as long as the block."""
    feed = Feed()
    try:
        yield feed
    finally:
        feed.stop()
