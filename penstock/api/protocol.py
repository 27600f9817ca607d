"""HTTP connections with limits that protect the server: silent, slow and oversized ones are closed.

uvicorn itself waits for the headers of a request forever, reads any number of them, and buffers a response
for as long as the client does not read it.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import TimerHandle
from typing import Any, cast

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from penstock.api.traffic import BUSY_S, Traffic
from penstock.errors import Problem

log = structlog.get_logger()

_TOO_MANY = Problem(
    code="too_many_connections",
    message="the server has as many connections as it may",
    hint="try again later, or raise limits.connections",
)
_LARGE_HEADERS = Problem(
    code="headers_too_large",
    message="the request has too many headers, or too large ones",
    hint="see limits.headers and limits.header_bytes",
)
_SLOW_HEADERS = Problem(
    code="request_timeout",
    message="the headers of the request did not arrive in time",
    hint="see limits.header_ms",
)
_SLOW_BODY = Problem(
    code="request_timeout",
    message="the body of the request did not arrive in time",
    hint="see limits.body_ms",
)


class BoundedConfig(uvicorn.Config):
    """The configuration of a server, with the `Traffic` that counts its connections."""

    def __init__(self, app: Any, traffic: Traffic, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, ws="none", **options)
        self.traffic = traffic


class BoundedProtocol(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.traffic = cast(BoundedConfig, config).traffic
        self.limits = self.traffic.limits
        app_state["traffic"] = self.traffic
        self._in_headers = self._oversized = False
        self._header_bytes = 0
        self._heard = 0.0
        self._paused_at: float | None = None
        self._header_timer: TimerHandle | None = None
        self._body_timer: TimerHandle | None = None
        self._send_timer: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request, or reject the client."""
        super().connection_made(transport)
        self.traffic.connections += 1
        if self.traffic.connections > self.traffic.most_connections:
            self.traffic.refused_connections += 1
            self._refuse(503, _TOO_MANY)
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers."""
        self.traffic.connections -= 1
        self._paused_at = None
        for timer in (self._header_timer, self._body_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # Requests

    def data_received(self, data: bytes) -> None:
        """Process bytes of a request."""
        if self.transport.is_closing():
            return
        self._heard = self.loop.time()
        super().data_received(data)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > self.limits.header_bytes:
                self._refuse(431, _LARGE_HEADERS)
            elif self._header_timer is None:
                self._await_headers()
        elif self._body_timer is None and self._awaits_body():
            self._body_timer = self.loop.call_later(self.limits.body_ms / 1000, self._check_body)

    def on_message_begin(self) -> None:
        """Handle the first byte of a request."""
        self._in_headers, self._oversized, self._header_bytes = True, False, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header; stored only up to the limit."""
        if len(self.headers) >= self.limits.headers:
            self._oversized = True
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request after all headers have arrived."""
        self._in_headers = False
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if self._oversized or size > self.limits.header_bytes:
            self._oversized = True
            self._refuse(431, _LARGE_HEADERS)
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Handle bytes of the body."""
        if not self._oversized:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        if not self._oversized:
            super().on_message_complete()

    def _await_headers(self) -> None:
        self._header_timer = self.loop.call_later(self.limits.header_ms / 1000, self._headers_late)

    def _headers_late(self) -> None:
        self._header_timer = None
        self.traffic.slow_senders += 1
        self._refuse(408, _SLOW_HEADERS)

    def _awaits_body(self) -> bool:
        cycle = self.cycle
        return cycle is not None and cycle.more_body and not cycle.response_complete

    def _check_body(self) -> None:
        """Close the connection if no body byte has arrived for too long, unless reading is paused."""
        self._body_timer = None
        if self.transport.is_closing() or not self._awaits_body():
            return
        left = self._heard + self.limits.body_ms / 1000 - self.loop.time()
        if left > 0 or self.flow.read_paused:
            wait = left if left > 0 else self.limits.body_ms / 1000
            self._body_timer = self.loop.call_later(wait, self._check_body)
            return
        self.traffic.slow_senders += 1
        if self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(408, _SLOW_BODY)

    def _refuse(self, status: int, problem: Problem) -> None:
        """Respond with a problem, and close the connection."""
        body = json.dumps({**problem.model_dump(), "errors": [problem.model_dump()]}).encode()
        retry = f"retry-after: {BUSY_S}\r\n" if status == 503 else ""
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{retry}"
        end = b"connection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + end + body)
        self.transport.close()

    # Responses

    def pause_writing(self) -> None:
        """Start a timeout, since the client is not reading."""
        super().pause_writing()
        self._paused_at = self.loop.time()
        self._send_timer = self.loop.call_later(self.limits.send_ms / 1000, self.cut_off, "send_ms")
        self._cut_off_some()

    def resume_writing(self) -> None:
        """Cancel the timeout, since the client is reading again."""
        super().resume_writing()
        self._paused_at = None
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def cut_off(self, limit: str) -> None:
        """Close a connection whose client is not reading, and free its buffers."""
        self.traffic.slow_readers += 1
        path = self.scope["path"] if self.scope else None
        log.warning("a client that does not read is cut off", client=self.client, path=path, limit=limit)
        self.transport.abort()

    def _cut_off_some(self) -> None:
        """While too many bytes are unsent, close the connections that have not read for the longest time."""
        paused = [one for one in self.connections if isinstance(one, BoundedProtocol) and one._paused_at]
        sizes = {one: one.transport.get_write_buffer_size() for one in paused}
        excess = sum(sizes.values()) + self.traffic.held_bytes - self.limits.unsent_bytes
        for one in sorted(paused, key=lambda each: each._paused_at or 0.0) if excess > 0 else ():
            one.cut_off("unsent_bytes")
            excess -= sizes[one]
            if excess <= 0:
                return
