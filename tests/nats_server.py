"""A NATS server with JetStream for tests."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tests.daemon import PASSWORD, USER, Daemon, certify
from tests.servers import free_port

T = TypeVar("T")


class Nats(Daemon):
    """A server that takes anybody without a login, and one user by its password."""

    package, program = "nats-server", "nats-server"
    encrypted: ClassVar[bool] = False

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port = free_port()
        users = [{"user": USER, "password": PASSWORD}, {"user": "anybody", "password": "x"}]
        config: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "jetstream": {"store_dir": str(home / "data")},
            "accounts": {"A": {"jetstream": "enabled", "users": users}},
            "no_auth_user": "anybody",
            "max_payload": 200_000,
        }
        if self.encrypted:
            key, certificate = certify(home)
            config["tls"] = {"cert_file": str(certificate), "key_file": str(key)}
        (home / "nats.conf").write_text(json.dumps(config))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        return [self.program, "-c", str(self.home / "nats.conf")]

    def answers(self) -> bool:
        self.do(lambda js: js.account_info())
        return True

    def do(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """The result of a call with a JetStream context."""

        async def run() -> T:
            import nats

            from penstock.specs.tls import Tls

            tls = Tls(ca_file=str(self.home / "server.pem")).context() if self.encrypted else None
            quiet = {"allow_reconnect": False, "error_cb": _ignore, "connect_timeout": 2}
            client = await nats.connect(f"nats://{self.address}", tls=tls, **quiet)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def stream(self, **fields: Any) -> str:
        """A new stream, which takes the subjects below its name."""
        name = f"s-{uuid.uuid4().hex[:12]}"
        self.do(lambda js: js.add_stream(**{"name": name, "subjects": [f"{name}.>"], **fields}))
        return name

    def send(self, subject: str, *values: Any, headers: Mapping[str, str] | None = None) -> None:
        """Publish messages; what is no bytes is written as JSON."""

        async def publish(js: Any) -> None:
            for value in values:
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                await js.publish(subject, body, headers=dict(headers) if headers else None)

        self.do(publish)

    def messages(self, stream: str) -> list[Any]:
        """All messages of a stream, as the client has them."""

        async def read(js: Any) -> list[Any]:
            info = await js.stream_info(stream)
            subscription = await js.pull_subscribe(">", stream=stream)
            found: list[Any] = []
            while len(found) < info.state.messages:
                found += await subscription.fetch(1000, timeout=5)
            return found

        return self.do(read)

    def count(self, stream: str) -> int:
        """Messages that are in a stream."""
        return int(self.do(lambda js: js.stream_info(stream)).state.messages)

    def time_of(self, stream: str, sequence: int) -> str:
        """When a message was stored, in ISO 8601."""
        raw = self.do(lambda js: js._api_request(f"$JS.API.STREAM.MSG.GET.{stream}", _json(seq=sequence)))
        return str(raw["message"]["time"])


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


class EncryptedNats(Nats):
    encrypted = True


async def _ignore(_: Exception) -> None:
    pass
