"""A Mosquitto broker for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import run
from typing import Any

from penstock.connectors.mqtt.loop import ClientLoop
from tests.daemon import PASSWORD, USER, Daemon, certify
from tests.servers import free_port

LOOK_S = 0.05


class Mosquitto(Daemon):
    """A broker with listeners for anybody, for a user with its password, the same with TLS, and for qos 1."""

    package, program = "mosquitto", "mosquitto"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port, self.login_port, self.tls_port, self.simple_port = (free_port() for _ in range(4))
        key, certificate = certify(home)
        passwords, rules = home / "passwords", home / "rules"
        rules.write_text(f"user {USER}\ntopic readwrite allowed/#\n")
        run(["mosquitto_passwd", "-b", "-c", str(passwords), USER, PASSWORD], check=True, capture_output=True)
        login = f"password_file {passwords}\nacl_file {rules}\nallow_anonymous false\n"
        tls = f"certfile {certificate}\nkeyfile {key}\n"
        owner = "user root\n" if os.geteuid() == 0 else ""
        (home / "mosquitto.conf").write_text(
            f"{owner}per_listener_settings true\npersistence true\npersistence_location {home}/\n"
            "max_queued_messages 0\nqueue_qos0_messages true\n"
            "max_packet_size 100000\nlog_type error\nlog_type warning\n"
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
            f"listener {self.login_port} 127.0.0.1\n{login}"
            f"listener {self.tls_port} 127.0.0.1\n{login}{tls}"
            f"listener {self.simple_port} 127.0.0.1\nallow_anonymous true\nmax_qos 1\n"
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def login_address(self) -> str:
        return f"127.0.0.1:{self.login_port}"

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def simple_address(self) -> str:
        return f"127.0.0.1:{self.simple_port}"

    @property
    def ca_file(self) -> Path:
        return self.home / "server.pem"

    def command(self) -> Sequence[str]:
        return [self.program, "-c", str(self.home / "mosquitto.conf")]

    def answers(self) -> bool:
        with self.client():
            return True

    def kill(self) -> None:
        """Stop the broker, which then saves its sessions: it keeps them in memory."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(30)
        until = time.monotonic() + 10
        with contextlib.suppress(ProcessLookupError):  # until the last process of the group has ended
            while time.monotonic() < until:
                os.killpg(self.process.pid, 0)
                time.sleep(0.05)

    @contextmanager
    def client(self, client_id: str = "", on_message: Any = None, **session: Any) -> Iterator[Any]:
        """A client of version 5 whose thread runs."""
        import paho.mqtt.client as mqtt

        made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
        made.on_message = on_message  # before it connects: the messages of a session come at once
        made.connect("127.0.0.1", self.port, **session)
        errors: list[Exception] = []
        loop = ClientLoop(made, errors.append)  # the library's own loop fails for descriptors above 1,023
        loop.start()
        try:
            until = time.monotonic() + 5
            while not made.is_connected():
                assert not errors, errors
                assert time.monotonic() < until, "no connection to the broker"
                time.sleep(0.01)
            yield made
        finally:
            made.disconnect()
            loop.stop()

    def topic(self) -> str:
        """A topic that is not used."""
        return f"t/{uuid.uuid4().hex[:12]}"

    def send(
        self,
        topic: str,
        *values: Any,
        headers: Mapping[str, str] | None = None,
        qos: int = 1,
        retain: bool = False,
    ) -> None:
        """Publish messages; what is no bytes is written as JSON."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.PUBLISH)
        if headers:
            properties.UserProperty = list(headers.items())
        with self.client() as client:
            for value in values:
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                client.publish(topic, body, qos, retain, properties=properties).wait_for_publish(10)


class Subscriber:
    """A session that the broker keeps, in which messages gather."""

    def __init__(self, broker: Mosquitto, topic: str, qos: int = 2) -> None:
        self.broker, self.name = broker, uuid.uuid4().hex
        self.found: list[Any] = []
        self._guard = threading.Lock()
        with self._session() as client:
            done = threading.Event()
            client.on_subscribe = lambda *_: done.set()
            client.subscribe(topic, qos)
            assert done.wait(5)

    def messages(self, quiet_s: float = 1.0) -> list[Any]:
        """All messages so far; waits until no more come for some time.

        That is counted in looks: a process that stands still for a second, such as to collect garbage, has
        looked for nothing in it.
        """
        with self._session():
            last, looks = -1, 0
            while looks * LOOK_S < quiet_s:
                time.sleep(LOOK_S)
                looks = looks + 1 if len(self.found) == last else 0
                last = len(self.found)
        return self.found

    def _add(self, client: Any, data: Any, message: Any) -> None:
        with self._guard:
            self.found.append(message)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
        with self.broker.client(self.name, self._add, clean_start=False, properties=properties) as client:
            yield client
