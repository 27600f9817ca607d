"""A Redis server for tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.daemon import PASSWORD, USER, Daemon, certify
from tests.servers import free_port


class RedisServer(Daemon):
    """A server that takes anybody without a login, and one user by its password, with or without TLS."""

    package, program = "redis-server", "redis-server"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port, self.tls_port = free_port(), free_port()
        key, certificate = certify(home)
        (home / "redis.conf").write_text(
            f"""\
bind 127.0.0.1
port {self.port}
tls-port {self.tls_port}
tls-cert-file {certificate}
tls-key-file {key}
tls-auth-clients no
dir {home}
appendonly yes
appendfsync always
save ""
user {USER} on >{PASSWORD} ~* &* +@all
"""
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        return self.home / "server.pem"

    @property
    def client(self) -> Any:
        from redis import Redis

        return Redis(port=self.port, decode_responses=True, socket_timeout=5)

    def command(self) -> Sequence[str]:
        return [self.program, str(self.home / "redis.conf")]

    def answers(self) -> bool:
        return bool(self.client.ping())

    def name(self) -> str:
        """A key that is not used."""
        return f"s:{uuid.uuid4().hex[:12]}"

    def add(
        self, stream: str, *values: Any, key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Add entries as the sink writes them."""
        beside: dict[str, str] = {} if key is None else {"key": key}
        beside |= {"headers": json.dumps(headers)} if headers else {}
        with self.client.pipeline(transaction=False) as batch:
            for value in values:
                batch.xadd(stream, {"value": json.dumps(value), **beside})
            batch.execute()

    def entries(self, stream: str) -> list[dict[str, str]]:
        """The fields of each entry."""
        return [fields for _, fields in self.client.xrange(stream)]
