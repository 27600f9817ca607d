"""Streaming responses: server-sent events to a limited number of clients, in small pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.api.errors import Responses, refusal
from penstock.api.traffic import TooManyFollowers, Traffic, traffic_of

PIECE = 64 * 1024
"""Bytes passed to a connection at a time: more would stay in its buffer while the client is not reading."""


class EventStream(StreamingResponse):
    """Messages for a follower; 503 if the limit of followers is reached.

    The next message is rendered after the last one was sent, so a slow client receives messages later. A
    client that does not read at all is disconnected by its connection (`protocol.py`).
    """

    def __init__(self, messages: AsyncIterator[bytes], status_code: int = 200) -> None:
        # Without the last header nginx would buffer the messages.
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(messages, status_code, headers, "text/event-stream")
        self._traffic: Traffic | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages."""
        self._traffic = traffic_of(scope)
        try:
            with self._traffic.following():
                await super().__call__(scope, receive, send)
        except TooManyFollowers as error:
            await refusal(error)(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send the headers, and each message in pieces."""
        assert self._traffic is not None
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for message in self.body_iterator:
            data = memoryview(message.encode() if isinstance(message, str) else message)
            with self._traffic.holding(len(data)):
                for begin in range(0, len(data), PIECE):
                    piece = bytes(data[begin : begin + PIECE])
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def described(what: str) -> Responses:
    """The declaration of a stream of messages."""
    return {200: {"description": what, "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
