"""Serves files of this process to the executors of its Spark session, for `java/DriverFiles.java`.

Executors may be on other machines. They read streams, and write the notes and the reading order of a batch.
A request reads bytes of a file or lists a directory, writes bytes at a position, renames a file or removes
it: all requests are idempotent. Each carries the secret of the session.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = "spark.penstock.files.port"
"""The session property with the port of the server; `DriverFiles.java` uses the same name."""

SECRET = "spark.penstock.files.secret"
"""The session property with the secret. Spark redacts properties with such a name in its UI and logs."""

LARGEST = 64 * 1024 * 1024
"""The maximum size of a request or a response in bytes. Executors request less."""

SKIPPED = 1024 * 1024
"""Maximum bytes to read of a request that is too large, before the connection is closed."""

PAGES = {"spool", "spool-order"}
"""Names of directories that tasks may write to: see `spool.py`. Nothing else is changed."""

IDLE_S = 60.0
"""Seconds after which a connection without a request is closed."""


class FileServer:
    """Serves files with certain path prefixes. Tasks may only write to directories named in `PAGES`."""

    def __init__(self, address: str, port: int, beginnings: Sequence[str]) -> None:
        self.secret = secrets.token_urlsafe(32)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = type("_Server", (_Server,), {"address_family": family})
        self._server: _Server = server((address, port), _Handler)
        self._server.secret = self.secret.encode()
        real = (os.path.realpath(each) + "/" * each.endswith("/") for each in beginnings)
        self._server.beginnings = tuple(real)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="files for executors", daemon=True).start()

    def properties(self) -> dict[str, str]:
        """The session properties by which executors find this server."""
        return {PORT: str(self.port), SECRET: self.secret}

    def stop(self) -> None:
        """Stop serving requests."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    secret: bytes
    beginnings: tuple[str, ...]


class _Refused(Exception):
    def __init__(self, status: HTTPStatus) -> None:
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_S
    server: _Server

    def do_GET(self) -> None:
        """Return bytes of a file, or the names in a directory."""
        self._respond(self._names if urlsplit(self.path).path == "/names" else self._bytes)

    def do_PUT(self) -> None:
        """Write bytes at a position of a file."""
        self._respond(self._write)

    def do_POST(self) -> None:
        """Rename a file."""
        self._respond(self._move)

    def do_DELETE(self) -> None:
        """Remove a file."""
        self._respond(self._remove)

    def log_message(self, *_: Any) -> None:
        """Log nothing: requests are not worth a line."""

    def _respond(self, answer: Any) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length <= LARGEST else self._skip(length)
        try:
            if length > LARGEST:
                raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            given = self.headers.get("Authorization", "").encode()
            if not hmac.compare_digest(given, b"Bearer " + self.server.secret):
                raise _Refused(HTTPStatus.UNAUTHORIZED)
            asked = parse_qs(urlsplit(self.path).query)
            found = answer({name: values[0] for name, values in asked.items()}, body)
            status = HTTPStatus.OK
        except _Refused as refused:
            status, found = refused.status, b""
        except (FileNotFoundError, NotADirectoryError):
            status, found = HTTPStatus.NOT_FOUND, b""
        except (OSError, ValueError, KeyError) as error:
            status, found = HTTPStatus.INTERNAL_SERVER_ERROR, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(found)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(found)

    def _skip(self, length: int) -> bytes:
        """Read a rejected body, up to a limit: closing the connection immediately may lose the response."""
        left = min(length, SKIPPED)
        while left > 0 and (read := self.rfile.read(min(left, 65536))):
            left -= len(read)
        self.close_connection = True
        return b""

    def _bytes(self, asked: dict[str, str], _: bytes) -> bytes:
        size = min(int(asked["size"]), LARGEST)
        with self._known(asked["path"]).open("rb") as file:
            file.seek(int(asked["at"]))
            return file.read(size)

    def _names(self, asked: dict[str, str], _: bytes) -> bytes:
        return "\n".join(os.listdir(self._known(asked["path"]))).encode()

    def _write(self, asked: dict[str, str], body: bytes) -> bytes:
        # Each request has the position of its bytes, so that it can be repeated.
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._page(asked["path"]), flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.seek(int(asked["at"]))
            file.write(body)
        return b""

    def _move(self, asked: dict[str, str], _: bytes) -> bytes:
        source, target = self._page(asked["path"]), self._page(asked["to"])
        try:
            source.replace(target)
        except FileNotFoundError:
            if not target.exists():  # otherwise this request is a repeat
                raise
        return b""

    def _remove(self, asked: dict[str, str], _: bytes) -> bytes:
        self._page(asked["path"]).unlink(missing_ok=True)
        return b""

    def _known(self, path: str) -> Path:
        found = os.path.realpath(path)
        if not f"{found}/".startswith(self.server.beginnings):
            raise _Refused(HTTPStatus.FORBIDDEN)
        return Path(found)

    def _page(self, path: str) -> Path:
        found = self._known(path)
        if not PAGES & set(found.parts):
            raise _Refused(HTTPStatus.FORBIDDEN)
        return found
