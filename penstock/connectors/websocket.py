"""The `websocket` source: messages that a server sends over a WebSocket."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from penstock.connectors.http.exchange import SHOWN, connection_error
from penstock.connectors.http.paths import JsonPath, plain, steps_of, text_at
from penstock.connectors.messages.source import MessageSource, raw_events
from penstock.connectors.probe import Probe
from penstock.connectors.received import Received, Receiver
from penstock.connectors.remote import library
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.frames.http.answers import shown
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.specs.http import Auth, Headers, WebsocketUrl
from penstock.specs.tls import Tls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from websockets.sync.client import ClientConnection

MOST = 5000
"""Maximum number of messages that are appended together."""

GATHER_S = 0.02
"""Seconds for which messages are collected after the first one: an append costs more than a message."""

CLOSE_S = 1.0
"""Timeout of the closing handshake, in seconds."""

PROBE_S = 3.0
"""Seconds for which the connection test waits for messages."""

SAMPLE = 5
"""Maximum number of messages that the connection test shows."""

REFUSED = {
    401: ("http_unauthorized", "auth", "check 'auth'"),
    403: ("http_forbidden", "auth", "grant the user access, or check 'auth' and the URL"),
    404: ("http_not_found", "url", "check the URL"),
}
"""Handshake statuses that only a changed setting can fix: code, field and hint of the problem."""


class WebsocketSource(MessageSource):
    """Connects to a WebSocket server and reads each message from the server as an event.

    The protocol has no positions, so messages can't be requested again. Messages that the server sends while
    the source is not connected are lost (at-most-once), and so are messages received in the last milliseconds
    before the process is killed. Messages that are stored in the input stream of the flow are not lost. When
    the connection is lost, the source reconnects and subscribes again.

    While the input stream is full, the source reads nothing from the connection. The server may then close
    the connection.
    """

    type: Literal["websocket"] = "websocket"
    url: WebsocketUrl = Field(min_length=1, description="URL, `ws://` or `wss://`.")
    subscribe: list[str | dict[str, Any]] = Field(
        default_factory=list,
        description="Messages to send after each connect: text, or an object that is sent as JSON.",
    )
    headers: Headers = Field(default_factory=dict, description="Headers of the handshake.")
    auth: Auth | None = Field(default=None, description="Authentication of the handshake.")
    tls: Tls | None = Field(
        default=None, description="TLS settings. Default: the certificates of the system."
    )
    subprotocols: list[str] = Field(
        default_factory=list, description="Subprotocols to offer, the preferred one first."
    )
    key: JsonPath | None = Field(
        default=None, min_length=1, description="Field of a JSON message that becomes the key of its event."
    )
    ping_ms: int = Field(
        default=20_000,
        ge=0,
        description="Ping interval. If a ping is not answered within this time, the connection is closed. "
        "0: no pings.",
    )
    timeout_ms: int = Field(default=10_000, ge=1, description="Timeout of the handshake.")
    max_message_bytes: int = Field(
        default=1024 * 1024,
        ge=1,
        le=1024**3,
        description="Maximum size of a message; a larger one closes the connection.",
    )

    guarantee: ClassVar = "at-most-once"
    tested: ClassVar = "the server of websockets 17.4"
    example: ClassVar = """\
type: websocket
url: wss://feed.example/v1
subscribe: [{op: subscribe, channel: trades}]
key: symbol
schema: symbol STRING, price DECIMAL(18, 8), at TIMESTAMP
"""

    @model_validator(mode="after")
    def _logs_in_once(self) -> Self:
        if self.auth is not None and "authorization" in (name.lower() for name in self.headers):
            raise ValueError("set either 'auth' or the header 'Authorization'")
        return self

    def receiver(self, site: Site) -> Receiver:
        return _Receiver(self, site.policy)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        receiver = _Receiver(self, site.policy)
        sample: list[dict[str, Any]] = []
        try:
            receiver.open(None)
            deadline = time.monotonic() + PROBE_S
            while len(sample) < SAMPLE and (left := deadline - time.monotonic()) > 0:
                values = receiver.messages(left)
                sample += [{"value": value.decode(errors="replace")[:SHOWN]} for value in values]
        except PenstockError as error:
            return Probe(problems=error.problems)
        finally:
            receiver.close()
        return Probe(sample=sample[:SAMPLE])


class _Receiver(Receiver):
    """Receives messages over one WebSocket connection."""

    def __init__(self, source: WebsocketSource, policy: Policy) -> None:
        self.source, self.policy = source, policy
        self._key = None if source.key is None else steps_of(source.key)
        self._connection: ClientConnection | None = None
        self._closing = contextlib.ExitStack()

    def open(self, position: str | None) -> None:
        try:
            self._connection = self._closing.enter_context(_connect(self.source, self.policy))
            for message in self.source.subscribe:
                self._connection.send(message if isinstance(message, str) else json.dumps(message))
        except PenstockError:
            raise
        except Exception as error:  # the client raises its own errors, and those of sockets and TLS
            raise _failure(self.source.url, error) from None

    def receive(self, wait_s: float) -> Received | None:
        values = self.messages(wait_s)
        if not values:
            return None
        keys = None if self._key is None else [self._key_of(value) for value in values]
        return Received(raw_events(values, keys))

    def close(self) -> None:
        self._closing.close()

    def messages(self, wait_s: float) -> list[bytes]:
        """The next messages; empty if none arrive within `wait_s` seconds."""
        assert self._connection is not None
        found: list[bytes] = []
        until = time.monotonic() + wait_s
        try:
            while len(found) < MOST:
                message = self._connection.recv(max(0.0, until - time.monotonic()))
                if not found:
                    until = time.monotonic() + GATHER_S
                found.append(message.encode() if isinstance(message, str) else message)
        except TimeoutError:
            pass
        except Exception as error:
            # Messages received before the failure are returned: the next call fails too.
            if not found:
                raise _failure(self.source.url, error) from None
        return found

    def _key_of(self, value: bytes) -> bytes | None:
        assert self._key is not None
        try:
            found = plain(text_at(value.decode(), self._key))
        except (ValueError, IndexError):
            return None  # not JSON: the decoder reports it
        return None if found is None else found.encode(errors="replace")


def _connect(source: WebsocketSource, policy: Policy) -> contextlib.AbstractContextManager[ClientConnection]:
    """A connection that is open inside its context."""
    connect = library("websockets.sync.client", "websocket").connect
    headers = dict(source.headers)
    context: ssl.SSLContext | None = None
    timeout_s = source.timeout_ms / 1000
    if source.auth is not None:
        from penstock.frames.http.clients import authorization

        headers["Authorization"] = authorization(policy, source.auth, timeout_s)
    if source.tls is not None and source.url.startswith("wss:"):
        context = source.tls.context()
    ping_s = source.ping_ms / 1000 or None
    made: contextlib.AbstractContextManager[ClientConnection] = connect(
        source.url,
        sock=_socket(source.url, policy, timeout_s),
        ssl=context,
        subprotocols=source.subprotocols or None,
        additional_headers=headers,
        open_timeout=timeout_s,
        ping_interval=ping_s,
        ping_timeout=ping_s,
        close_timeout=CLOSE_S,
        max_size=source.max_message_bytes,
    )
    return made


def _socket(url: str, policy: Policy, timeout_s: float) -> socket.socket | None:
    """A socket connected to the address that the policy checked; None if a proxy makes the connection."""
    from penstock.frames.http.transport import connected, proxy_for

    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "wss"
    if proxy_for("https" if secure else "http", host) is not None:
        return None
    made = connected(policy, host, parts.port or (443 if secure else 80), timeout_s)
    made.settimeout(None)  # the client has its own timeouts
    return made


def _failure(url: str, error: Exception) -> PenstockError:
    """The error for an exception of the WebSocket client."""
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

    where = shown(url)
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        if status in REFUSED:
            code, path, hint = REFUSED[status]
            message = f"{where} rejects the connection: {status}"
            return Invalid(Problem(code=code, message=message, path=path, hint=hint))
        message, hint = (
            f"{where} responded with {status}",
            "check that there is a WebSocket server at this address",
        )
        return Unavailable(Problem(code="http_failed", message=message, path="url", hint=hint))
    if isinstance(error, ConnectionClosed):
        close = error.rcvd or error.sent
        reason = "no reason" if close is None else f"{close.code} {close.reason}".strip()
        message, hint = (
            f"the connection to {where} was closed: {reason}",
            "the source reconnects automatically",
        )
        return Unavailable(Problem(code="websocket_closed", message=message, path="url", hint=hint))
    if isinstance(error, InvalidHandshake):
        message, hint = f"{where} is not a WebSocket server", "check the URL"
        return Unavailable(Problem(code="websocket_handshake", message=message, path="url", hint=hint))
    return connection_error(url, error)
