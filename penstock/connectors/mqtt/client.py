"""Connections to MQTT brokers, and their errors."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from penstock.connectors.mqtt.loop import ClientLoop
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
ANSWER_S = 15.0
"""Seconds that a broker may take to respond or to acknowledge. A batch has its own deadline."""

KEEPALIVE_S = 30

LOGIN_REFUSED = (134, 135)
"""Reason codes of a CONNACK: bad user name or password, and not authorized."""

Version = Literal["5", "3.1.1"]


class Lost(Retryable):
    """A connection was closed by the broker, or broke."""


class MqttEnd(Component):
    """A connection to an MQTT broker."""

    address: Address = Field(description="The broker, as `host:port`.")
    version: Version = Field(
        default="5", description="MQTT version. Only messages of version 5 have headers."
    )
    security: Security | None = Field(default=None, description="TLS and authentication.")


class MqttConnection:
    """A connection to a broker, run by its own thread. Methods wait for its responses.

    `changed` guards all state that callbacks, which run in that thread, share with the caller.
    """

    def __init__(
        self,
        end: MqttEnd,
        client_id: str = "",
        *,
        prepare: Callable[[Any, MqttConnection], None] = lambda client, connection: None,
        session_s: int | None = None,
        receive_maximum: int | None = None,
    ) -> None:
        """Connect. The broker keeps the session for `session_s` seconds after a connection, if given."""
        mqtt = library("paho.mqtt.client", "mqtt")
        self.end = end
        self.changed = threading.Condition()
        self.granted: dict[str, Any] = {}
        """Properties in the broker's response (version 5)."""
        self._connected, self._cancelled = False, False
        self._error: Exception | None = None
        five = end.version == "5"
        session = session_s is not None
        self.client: Any = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id,
            clean_session=None if five else not session,
            protocol=mqtt.MQTTv5 if five else mqtt.MQTTv311,
            manual_ack=session,
            # An automatic reconnect would lose messages that are not acknowledged yet.
            reconnect_on_failure=False,
        )
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self.client.connect_timeout = CONNECT_S / 2
        if (context := context_of(end.security)) is not None:
            self.client.tls_set_context(context)
        if (login := login_of(end.security)) is not None:
            self.client.username_pw_set(*login)
        prepare(self.client, self)
        self._loop = ClientLoop(self.client, self._fail)
        properties = _connect_properties(session_s, receive_maximum) if five else None
        start = {"clean_start": not session} if five else {}
        try:
            host, port = host_and_port(end.address)
            self.client.connect(host, port, KEEPALIVE_S, properties=properties, **start)
        except (OSError, ValueError) as error:
            self._loop.stop()
            raise not_connected(error, "mqtt", [end.address], "address") from None
        self._loop.start()
        try:
            if not self.wait(lambda: self._connected, CONNECT_S):
                raise self._silent()
        except BaseException:
            self.close()
            raise

    def wait(self, ready: Callable[[], Any], seconds: float) -> bool:
        """Wait for a condition; false after `seconds`, raises the failure of the connection."""
        until = time.monotonic() + seconds
        with self.changed:
            while not ready():
                if self._error is not None:
                    raise self._error
                if self._cancelled:
                    raise Retryable("the run ended before the broker responded")
                if time.monotonic() >= until:
                    return False
                self.changed.wait(min(1.0, max(0.0, until - time.monotonic())))
            return True

    def cancel(self) -> None:
        """Make a call that is waiting raise. Called by another thread."""
        with self.changed:
            self._cancelled = True
            self.changed.notify_all()

    def close(self) -> None:
        """Close the connection and end its thread."""
        self.client.on_disconnect = None
        with contextlib.suppress(Exception):  # it may be lost already
            self.client.disconnect()
        self._loop.stop()

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        with self.changed:
            if reason.is_failure:
                self._error = self._error or self._refused(reason)
            else:
                self._connected = True
                self.granted = properties.json() if properties is not None else {}
            self.changed.notify_all()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        with self.changed:
            lost = Lost(f"the connection to the broker was lost: {str(reason).lower()}")
            self._fail(lost if self._connected else self._silent())

    def _fail(self, error: Exception) -> None:
        with self.changed:
            self._error = self._error or error
            self.changed.notify_all()

    def _refused(self, reason: Any) -> Exception:
        if reason.value in LOGIN_REFUSED:
            return refused_login("mqtt", "the broker")
        message, hint = (
            f"the broker rejects the connection: {str(reason).lower()}",
            "check the broker's log",
        )
        problem = Problem(code="mqtt_refused", message=message, path="address", hint=hint)
        if "version" in str(reason).lower():
            hint = "set version: '3.1.1', or '5'"
            return Invalid(problem.model_copy(update={"path": "version", "hint": hint}))
        return Unavailable(problem)

    def _silent(self) -> Exception:
        return not_connected(ConnectionError("no response"), "mqtt", [self.end.address], "address")


def _connect_properties(session_s: int | None, receive_maximum: int | None) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    made = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    if session_s is not None:
        made.SessionExpiryInterval = session_s
    if receive_maximum is not None:
        made.ReceiveMaximum = receive_maximum
    return made
