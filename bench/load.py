"""Clients that send the same request repeatedly, in their own process."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import psutil


@dataclass(frozen=True)
class Load:
    """The number of responses, the elapsed time, and the processor time of the clients."""

    answers: int
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Responses per second."""
        return self.answers / self.seconds


def load(url: str, path: str, kind: str, body: bytes, clients: int, seconds: float) -> Load:
    """Send a body from many connections, each of which sends again as soon as it has a response."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (url, path, kind, body, clients, seconds))


def _run(url: str, path: str, kind: str, body: bytes, clients: int, seconds: float) -> Load:
    import uvloop

    return uvloop.run(_all(url, path, kind, body, clients, seconds))


async def _all(url: str, path: str, kind: str, body: bytes, clients: int, seconds: float) -> Load:
    place = urlsplit(url)
    head = [f"POST {path} HTTP/1.1", f"Host: {place.netloc}", f"Content-Type: {kind}"]
    request = "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body
    loop = asyncio.get_running_loop()
    used, began = sum(psutil.Process().cpu_times()[:2]), time.perf_counter()
    made = [
        await loop.create_connection(lambda: _Client(request, began + seconds), place.hostname, place.port)
        for _ in range(clients)
    ]
    answers = sum(await asyncio.gather(*(client.done for _, client in made)))
    return Load(answers, time.perf_counter() - began, sum(psutil.Process().cpu_times()[:2]) - used)


class _Client(asyncio.Protocol):
    """One connection. Parses only the length of a response, so that the server is the bottleneck."""

    def __init__(self, request: bytes, until: float) -> None:
        self._request, self._until = request, until
        self._received, self._answers = b"", 0
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's lacks only the base class
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received = data = self._received + data if self._received else data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        if not data.startswith(b"HTTP/1.1 200"):
            self._fail(data.decode())
            return
        at = data.index(b"content-length: ", 0, head + 2) + len(b"content-length: ")
        if len(data) < head + 4 + int(data[at : data.index(b"\r\n", at)]):
            return
        self._received = b""
        self._answers += 1
        if time.perf_counter() < self._until:
            self._transport.write(self._request)
        else:
            self.done.set_result(self._answers)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the server has closed the connection")

    def _fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(SystemExit(reason))
