"""Connections to NATS, and the parts of the JetStream API that both the source and the sink use."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from penstock.connectors.remote import (
    Address,
    Security,
    context_of,
    library,
    login_of,
    not_connected,
    refused_login,
)
from penstock.errors import Fatal, Invalid, PenstockError, Problem, Retryable, Unavailable
from penstock.specs.base import Component

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")

CONNECT_S = 4
ANSWER_S = 10.0
"""Seconds that JetStream may take to respond or to acknowledge. A batch has its own deadline."""

API = "$JS.API"

OWN_HEADERS = "nats-"
"""Prefix of the headers that control JetStream itself."""


class NatsEnd(Component):
    """A connection to NATS servers."""

    servers: list[Address] = Field(
        min_length=1, description="Servers of one cluster, as `host:port`; the first that responds is used."
    )
    security: Security | None = Field(default=None, description="TLS and authentication.")


class NatsConnection:
    """A NATS connection with blocking calls. Its event loop runs in a thread that also answers pings."""

    def __init__(self, end: NatsEnd) -> None:
        nats = library("nats", "nats")
        self.lost = asyncio.Event()
        """Set when the connection has ended."""
        self._error: Exception | None = None
        self._call: Future[Any] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        try:
            tls = context_of(end.security)
            self.client: Client = _client_class()(encrypted=tls is not None)
            self.call(self._connect(end, tls), CONNECT_S * (len(end.servers) + 1))
        except (OSError, TimeoutError, nats.errors.Error) as error:
            self.close()
            raise _refused(self._error or error, end) from None
        except BaseException:
            self.close()
            raise

    @property
    def max_payload(self) -> int:
        """The maximum size of a message with its headers that the server accepts, in bytes."""
        return int(self.client.max_payload)

    def call(self, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """The result of a coroutine in the connection's thread; raises `TimeoutError` after `seconds`."""
        self._call = future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        finally:
            future.cancel()
            self._call = None

    async def ask(self, subject: str, **body: Any) -> dict[str, Any]:
        """A response of the JetStream API; raises `Refusal` for an error, `Unavailable` without JetStream."""
        from nats.errors import Error, NoRespondersError

        try:
            given = json.dumps(body).encode() if body else b""
            answer = await self.client.request(f"{API}.{subject}", given, timeout=ANSWER_S)
        except NoRespondersError:
            message, hint = (
                "JetStream is not enabled on the server",
                "enable jetstream in the server's configuration",
            )
            raise Unavailable(
                Problem(code="no_jetstream", message=message, path="servers", hint=hint)
            ) from None
        except (Error, OSError) as error:
            raise Retryable(f"NATS is not responding: {error}") from None
        found: dict[str, Any] = json.loads(answer.data)
        if "error" in found:
            raise Refusal(found["error"])
        return found

    async def streams(self) -> list[dict[str, Any]]:
        """The configuration and state of each stream."""
        found: list[dict[str, Any]] = []
        while True:
            page = await self.ask("STREAM.LIST", offset=len(found))
            found += page["streams"] or []
            if len(found) >= page["total"] or not page["streams"]:
                return sorted(found, key=lambda each: str(each["config"]["name"]))

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Clear an event and wait for it; false after `seconds`, `Retryable` if the connection is lost."""
        event.clear()
        tasks = [asyncio.ensure_future(each.wait()) for each in (event, self.lost)]
        try:
            done, _ = await asyncio.wait(tasks, timeout=max(0.0, seconds), return_when="FIRST_COMPLETED")
        finally:
            for task in tasks:
                task.cancel()
        if self.lost.is_set():
            raise Retryable("the connection to NATS was lost")
        return bool(done)

    def cancel(self) -> None:
        """Make a call that is waiting raise. Called by another thread."""
        if (call := self._call) is not None:
            call.cancel()

    def close(self) -> None:
        """Close the connection and end its thread."""
        if not self._thread.is_alive():
            return
        if hasattr(self, "client"):
            with contextlib.suppress(Exception):  # it may be lost already
                self.call(self.client.close(), 2)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()

    async def _connect(self, end: NatsEnd, tls: Any) -> None:
        user, password = login_of(end.security) or (None, None)
        await self.client.connect(
            [f"nats://{address}" for address in end.servers],
            name="penstock",
            user=user,
            password=password,
            tls=tls,
            connect_timeout=CONNECT_S,
            # The caller reconnects, and then knows which messages were lost with the connection.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=self._failed,
            closed_cb=self._closed,
        )

    async def _failed(self, error: Exception) -> None:
        self._error = error

    async def _closed(self) -> None:
        self.lost.set()


class Refusal(Fatal):
    """An error response of JetStream."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.number = int(error.get("err_code") or 0)
        self.reason = str(error.get("description") or "no reason given")
        super().__init__(f"JetStream error: {self.reason}")


NO_STREAM, NO_CONSUMER, TOO_LARGE = 10059, 10014, 10054
FULL = frozenset({10023, 10047, 10077, 10122, 10120})
"""Error numbers of streams and accounts that are currently full."""


def unknown_stream(message: str, path: str, names: list[str]) -> Problem:
    """The problem for a stream that doesn't exist, with the names of existing streams."""
    hint = f"create the stream, or choose one of: {', '.join(names)}" if names else "create the stream"
    return Problem(code="unknown_stream", message=message, path=path, hint=hint)


def covers(pattern: str, subject: str) -> bool:
    """Whether a subject, or another pattern, is within a pattern with `*` and `>`."""
    parts, given = pattern.split("."), subject.split(".")
    for number, part in enumerate(parts):
        if part == ">":
            return len(given) > number
        if number >= len(given) or given[number] == ">" or (part != "*" and part != given[number]):
            return False
    return len(parts) == len(given)


def _client_class() -> Any:
    from nats.aio.client import Client
    from nats.errors import SecureConnWantedError

    class Careful(Client):
        """Rejects a server without TLS before the password is sent: the library would continue."""

        def __init__(self, *, encrypted: bool) -> None:
            super().__init__()
            self._encrypted = encrypted

        async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
            if self._encrypted and not info.get("tls_required"):
                raise SecureConnWantedError
            await super()._process_info(info, initial_connection)

        async def _process_connect_init(self) -> None:
            """Send CONNECT and PING at once.

            A server that rejects the login closes the connection. A PING that arrives later would cause a
            reset, and the reason would be lost.
            """
            transport: Any = self._transport
            write, held = transport.write, []

            def together(payload: bytes) -> None:
                held.append(payload)
                if not payload.startswith(b"CONNECT"):
                    write(b"".join(held))
                    held.clear()

            transport.write = together
            try:
                await super()._process_connect_init()
            finally:
                transport.write = write

    return Careful


def _refused(error: Exception, end: NatsEnd) -> PenstockError:
    from nats.errors import SecureConnWantedError

    text = str(error)
    if "uthorization" in text or "uthentication" in text:
        return refused_login("nats", "NATS")
    if isinstance(error, SecureConnWantedError):
        message, hint = "the server does not offer TLS", "remove security.tls, or enable TLS in the server"
        return Invalid(Problem(code="nats_tls", message=message, path="security.tls", hint=hint))
    return not_connected(error, "nats", end.servers, "servers")
