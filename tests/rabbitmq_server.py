"""A RabbitMQ server for tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.daemon import PASSWORD, USER, Daemon, certify
from tests.servers import free_port

SCRIPT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""The one in the path changes to another user and to the directories of the system."""

# The port mapper of Erlang would outlive the server as a daemon. Here it runs beside it and ends with it.
BOTH = (
    'epmd -port "$ERL_EPMD_PORT" & names=$!; "$@" & pid=$!; trap "kill $pid" TERM; wait $pid; wait $pid; '
    "kill $names"
)


class Rabbitmq(Daemon):
    """A server with one user, with or without TLS."""

    package, program = "rabbitmq-server", "rabbitmq-server"
    patience_s = 90.0

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port, self.tls_port, self.dist_port, self.epmd_port = (free_port() for _ in range(4))
        key, certificate = certify(home)
        (home / "rabbitmq.conf").write_text(
            f"""\
listeners.tcp.1 = 127.0.0.1:{self.port}
listeners.ssl.1 = 127.0.0.1:{self.tls_port}
ssl_options.cacertfile = {certificate}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
ssl_options.verify = verify_none
default_user = {USER}
default_pass = {PASSWORD}
log.console = true
log.file = false
log.console.level = warning
"""
        )
        (home / "enabled_plugins").write_text("[].")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        return self.home / "server.pem"

    def command(self) -> Sequence[str]:
        return ["sh", "-c", BOTH, "sh", SCRIPT]

    def environment(self) -> Mapping[str, str]:
        home = str(self.home)
        return {
            "HOME": home,
            "RABBITMQ_NODENAME": f"penstock-{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": f"{home}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{home}/data",
            "RABBITMQ_LOG_BASE": f"{home}/logs",
            "RABBITMQ_PID_FILE": f"{home}/pid",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def answers(self) -> bool:
        with self.channel():
            return True

    @contextmanager
    def channel(self) -> Iterator[Any]:
        import pika

        login = pika.PlainCredentials(USER, PASSWORD)
        given = pika.ConnectionParameters(
            "127.0.0.1", self.port, credentials=login, blocked_connection_timeout=5
        )
        connection = pika.BlockingConnection(given)
        try:
            yield connection.channel()
        finally:
            connection.close()

    def queue(self, **arguments: Any) -> str:
        """A new durable queue."""
        name = f"q-{uuid.uuid4().hex[:12]}"
        with self.channel() as channel:
            channel.queue_declare(name, durable=True, arguments=arguments)
        return name

    def send(
        self, queue: str, *values: Any, headers: Mapping[str, Any] | None = None, **properties: Any
    ) -> None:
        """Put messages into a queue; what is no bytes is written as JSON."""
        import pika

        with self.channel() as channel:
            channel.confirm_delivery()
            given = pika.BasicProperties(
                headers=dict(headers) if headers else None, delivery_mode=2, **properties
            )
            for value in values:
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                channel.basic_publish("", queue, body, given)

    def messages(self, queue: str) -> list[tuple[Any, bytes]]:
        """The properties and the value of each message in a queue; they stay there."""
        found: list[tuple[Any, bytes]] = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue)
                if method is None:
                    return found
                found.append((properties, body))

    def size(self, queue: str) -> int:
        """Messages that are ready in a queue."""
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)
