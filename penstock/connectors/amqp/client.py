"""Connections to servers of AMQP 0.9.1, such as RabbitMQ, and the explanation of their errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import Field

from penstock.connectors.remote import (
    Address,
    Security,
    context_of,
    host_and_port,
    library,
    login_of,
    not_connected,
    refused_login,
)
from penstock.errors import Invalid, Problem, Retryable, Unavailable
from penstock.specs.base import Component

CONNECT_S = 8.0
ANSWER_S = 30.0
"""Seconds that the server may take to respond or to confirm. A batch has its own deadline."""

HEARTBEAT_S = 30


class AmqpEnd(Component):
    """A connection to a server of AMQP 0.9.1."""

    address: Address = Field(description="The server, as `host:port`.")
    virtual_host: str = Field(default="/", min_length=1, description="The virtual host.")
    security: Security | None = Field(
        default=None, description="TLS and authentication. Without a login the user is `guest`."
    )


class AmqpConnection:
    """A connection with one channel, run by a separate thread. Methods wait for its responses.

    `changed` guards the state that callbacks of the channel, which run in that thread, share with the caller.
    """

    def __init__(self, end: AmqpEnd) -> None:
        pika = library("pika", "amqp")
        self.end = end
        self.changed = threading.Condition()
        self.channel: Any = None
        self.blocked = False
        """Whether the server currently accepts no messages, because it lacks memory or disk space."""
        self._error: BaseException | None = None
        self._cancelled = False
        self._connection = pika.SelectConnection(_parameters(end), self._opened, self._closed, self._closed)
        self._connection.add_on_connection_blocked_callback(lambda *_: self._block(True))
        self._connection.add_on_connection_unblocked_callback(lambda *_: self._block(False))
        self._thread = threading.Thread(target=self._run, name="amqp", daemon=True)
        self._thread.start()
        try:
            self.wait(lambda: self.channel is not None, CONNECT_S)
        except BaseException:
            self.close()
            raise

    def do(self, work: Callable[[Any], None]) -> None:
        """Run a function with the channel in the connection's thread."""

        def guarded() -> None:
            try:
                if self._error is None:
                    work(self.channel)
            except Exception as error:  # the thread runs all callbacks, and must not end because of one
                self.fail(error)

        self._connection.ioloop.add_callback_threadsafe(guarded)

    def wait(self, ready: Callable[[], Any], seconds: float) -> bool:
        """Wait until `ready` is true; raises the failure of the connection; false after `seconds`.

        While the server accepts no messages, time does not count.
        """
        until = time.monotonic() + seconds
        with self.changed:
            while not ready():
                if self._error is not None:
                    raise failure_of(self._error, self.end)
                if self._cancelled:
                    raise Retryable("the run ended before the server responded")
                if self.blocked:
                    until = time.monotonic() + seconds
                if time.monotonic() >= until:
                    return False
                self.changed.wait(min(1.0, max(0.0, until - time.monotonic())))
            return True

    def ask(self, work: Callable[[Any, Callable[[Any], None]], None]) -> Any:
        """The response to a method of the channel; `work` gets the callback for it."""
        answers: list[Any] = []

        def answered(answer: Any) -> None:
            with self.changed:
                answers.append(answer)
                self.changed.notify_all()

        self.do(lambda channel: work(channel, answered))
        if not self.wait(lambda: answers, ANSWER_S):
            raise Retryable(f"the server did not respond within {ANSWER_S:.0f} seconds")
        return answers[0]

    def fail(self, error: BaseException) -> None:
        """End the connection with a failure; only the first failure is recorded."""
        with self.changed:
            self._error = self._error or error
            self.changed.notify_all()

    def cancel(self) -> None:
        """Make a waiting call raise. Called by another thread."""
        with self.changed:
            self._cancelled = True
            self.changed.notify_all()

    def close(self) -> None:
        """Close the connection and end its thread."""

        def end() -> None:
            if self._connection.is_open:
                self._connection.close()
            else:
                self._connection.ioloop.stop()

        if self._thread.is_alive():
            self._connection.ioloop.add_callback_threadsafe(end)
            self._thread.join(2)
        if self._thread.is_alive():
            self._connection.ioloop.add_callback_threadsafe(self._connection.ioloop.stop)
            self._thread.join(2)

    def _run(self) -> None:
        try:
            self._connection.ioloop.start()
        except Exception as error:  # it would be lost otherwise
            self.fail(error)
        finally:
            self.fail(ConnectionError("the connection was closed"))

    def _opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _closed(self, connection: Any, error: BaseException) -> None:
        self.fail(error)
        connection.ioloop.stop()

    def _channel_opened(self, channel: Any) -> None:
        channel.add_on_close_callback(lambda _, error: self.fail(error))
        with self.changed:
            self.channel = channel
            self.changed.notify_all()

    def _block(self, blocked: bool) -> None:
        with self.changed:
            self.blocked = blocked
            self.changed.notify_all()


def failure_of(error: BaseException, end: AmqpEnd) -> Exception:
    """The error behind an exception of the client library."""
    from pika import exceptions as known

    if isinstance(error, Retryable):
        return error
    for cause in _causes(error):
        code, text = getattr(cause, "reply_code", 0), getattr(cause, "reply_text", "")
        if isinstance(cause, known.ProbableAuthenticationError | known.AuthenticationError):
            return refused_login("amqp", "the server")
        if isinstance(cause, known.ConnectionClosedByBroker) and code == 403:
            return refused_login("amqp", "the server")
        if isinstance(cause, known.ProbableAccessDeniedError) or code == 530:
            message = f"there is no virtual host '{end.virtual_host}', or the user has no access to it"
            hint = "correct virtual_host, or grant the user access to it"
            return Invalid(
                Problem(code="unknown_virtual_host", message=message, path="virtual_host", hint=hint)
            )
        if code == 403:
            message, hint = f"permission denied: {text}", "grant the user permissions for it"
            return Invalid(Problem(code="amqp_forbidden", message=message, path="security.login", hint=hint))
        if code == 404 and "exchange" in text:
            hint = "create the exchange, or correct its name"
            return Unavailable(
                Problem(code="unknown_exchange", message=_plain(text), path="exchange", hint=hint)
            )
        if code == 404 and "queue" in text:
            hint = "create the queue, or correct its name"
            return Unavailable(Problem(code="unknown_queue", message=_plain(text), path="queue", hint=hint))
        if isinstance(cause, known.IncompatibleProtocolError | known.StreamLostError):
            closed = ConnectionError("closed by the server")
            return not_connected(closed, "amqp", [end.address], "address")
        if isinstance(cause, known.ChannelClosedByBroker):
            return Retryable(f"the server has closed the channel: {text}")
    return not_connected(_deepest(error), "amqp", [end.address], "address")


def _parameters(end: AmqpEnd) -> Any:
    import pika

    host, port = host_and_port(end.address)
    context = context_of(end.security)
    user, password = login_of(end.security) or ("guest", "guest")
    return pika.ConnectionParameters(
        host,
        port,
        end.virtual_host,
        pika.PlainCredentials(user, password),
        heartbeat=HEARTBEAT_S,
        ssl_options=pika.SSLOptions(context, host) if context is not None else None,
        socket_timeout=4,
        stack_timeout=6,
        client_properties={"connection_name": "penstock"},
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its inner errors, which pika wraps in its own ways."""
    seen: list[BaseException] = []
    todo = [error]
    while todo:
        each = todo.pop(0)
        if not isinstance(each, BaseException) or each in seen:
            continue
        seen.append(each)
        yield each
        inner = [each.__cause__, each.__context__, getattr(each, "exception", None)]
        todo += [*inner, *getattr(each, "exceptions", ()), *each.args]


def _deepest(error: BaseException) -> BaseException:
    """The cause from the operating system or TLS, else the last one."""
    causes = list(_causes(error))
    return next((each for each in causes if isinstance(each, OSError)), causes[-1])


def _plain(text: str) -> str:
    """A message of the server without its code, such as `NOT_FOUND - no exchange 'x' in vhost '/'`."""
    return text.partition(" - ")[2] or text
