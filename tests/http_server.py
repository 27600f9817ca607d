"""A small HTTP server that answers as a test says, and can be stopped and started again."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.servers import free_port


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        return json.loads(self.body)


class Said(NamedTuple):
    """An answer; what is not bytes is sent as JSON."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)
    cut: int | None = None
    """Close the connection after this many bytes of the body."""
    pause_s: float = 0
    """Seconds between two bytes of the body."""


Answer = Callable[[Asked], Said]


class Server:
    """A server on a port of its own, which it keeps over an outage. `answer` may be replaced at any time."""

    def __init__(
        self, answer: Answer = lambda _: Said(), certificate: Path | None = None, asks: bool = False
    ) -> None:
        self.answer, self.certificate, self.asks = answer, certificate, asks
        self.asked: list[Asked] = []
        """All requests, in the order in which they came."""
        self.port = free_port()
        self.most = 0
        """Requests that were there at once."""
        self._now, self._lock = 0, threading.Lock()
        self._open: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            if self.asks:  # for a certificate of the client
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def said(self, asked: Asked) -> Said:
        with self._lock:
            self.asked.append(asked)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return self.answer(asked)
        finally:
            with self._lock:
                self._now -= 1

    def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = 1 << 16  # else headers and body are two packets, and the second one waits

            def setup(self) -> None:
                super().setup()
                with server._lock:
                    server._open.add(self.connection)

            def finish(self) -> None:
                with server._lock:
                    server._open.discard(self.connection)
                with contextlib.suppress(OSError):
                    super().finish()

            def handle(self) -> None:
                with contextlib.suppress(OSError):  # of a connection that was cut
                    super().handle()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                said = server.said(Asked(self.command, self.path, body, dict(self.headers)))
                text = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                if said.status in (204, 304):
                    text = b""
                self.send_response(said.status)
                for name, value in {**said.headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                for start in range(len(text)) if said.pause_s else ():
                    self.wfile.write(text[start : start + 1])
                    self.wfile.flush()
                    time.sleep(said.pause_s)
                self.wfile.write(text[: said.cut] if not said.pause_s else b"")
                if said.cut is not None:
                    self.wfile.flush()
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def http_server(answer: Answer) -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    with serving(answer) as server:
        yield server.url


@contextmanager
def serving(
    answer: Answer = lambda _: Said(), certificate: Path | None = None, asks: bool = False
) -> Iterator[Server]:
    """A server that lives as long as the block."""
    server = Server(answer, certificate, asks)
    try:
        yield server
    finally:
        server.stop()
