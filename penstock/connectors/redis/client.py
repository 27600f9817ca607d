"""Connections to Redis, their errors, and the fields of an event in a Redis stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from penstock.connectors.remote import (
    Address,
    Security,
    host_and_port,
    library,
    login_of,
    not_connected,
    refused_login,
)
from penstock.errors import Backpressure, Invalid, Problem, Retryable, Unavailable
from penstock.specs.base import Component

if TYPE_CHECKING:
    from redis import Redis

CONNECT_S = 4.0
ANSWER_S = 15.0
"""Seconds that Redis may take to respond. A batch has its own deadline."""

PAUSE_S = 2.0
"""Seconds to wait if the server is out of memory."""

VALUE, KEY, HEADERS = "value", "key", "headers"
"""The fields of an entry."""


class RedisEnd(Component):
    """A connection to a Redis server."""

    address: Address = Field(description="The server, as `host:port`.")
    database: int = Field(default=0, ge=0, description="Number of the database.")
    security: Security | None = Field(
        default=None,
        description="TLS and authentication. For a server with only a password, the user is `default`.",
    )

    def connect(self) -> Redis:
        """A client with a tested connection; raises `Invalid` or `Unavailable`."""
        redis = library("redis", "redis")
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        host, port = host_and_port(self.address)
        user, password = login_of(self.security) or (None, None)
        made: Redis = redis.Redis(
            host=host,
            port=port,
            db=self.database,
            username=user,
            password=password,
            socket_connect_timeout=CONNECT_S,
            socket_timeout=ANSWER_S,
            # A transaction whose response was lost may have been executed: the client must not retry it.
            retry=Retry(NoBackoff(), 0),
            client_name="penstock",
            **self._tls(),
        )
        try:
            made.ping()
        except redis.RedisError as error:
            made.close()
            raise failure_of(error, self) from None
        return made

    def _tls(self) -> dict[str, Any]:
        if self.security is None or (tls := self.security.tls) is None:
            return {}
        tls.context("security.tls")  # raises if a file can't be used
        return {
            "ssl": True,
            "ssl_ca_certs": tls.ca_file,
            "ssl_certfile": tls.certificate_file,
            "ssl_keyfile": tls.certificate_file,
            "ssl_password": tls.key_password,
            "ssl_check_hostname": tls.verify_hostname,
        }


def failure_of(error: Exception, end: RedisEnd) -> Exception:
    """The error for an exception of the client library."""
    from redis import exceptions as known

    text = str(error)
    if isinstance(error, known.AuthenticationError | known.AuthenticationWrongNumberOfArgsError):
        return refused_login("redis", "Redis")
    if isinstance(error, known.NoPermissionError):
        hint = "grant the user access to the commands and keys (ACL SETUSER)"
        message = f"permission denied: {text}"
        return Invalid(Problem(code="redis_forbidden", message=message, path="security.login", hint=hint))
    if isinstance(error, known.MovedError | known.ClusterError | known.AskError) or "CROSSSLOT" in text:
        message, hint = (
            "the server is part of a Redis Cluster",
            "use a Redis server that is not part of a cluster",
        )
        return Invalid(Problem(code="redis_cluster", message=message, path="address", hint=hint))
    if isinstance(error, known.OutOfMemoryError):
        return Backpressure(f"Redis is out of memory: {text}", PAUSE_S)
    if isinstance(error, known.ReadOnlyError):
        message, hint = "the server is a read-only replica", "use the primary server"
        return Unavailable(Problem(code="redis_read_only", message=message, path="address", hint=hint))
    if isinstance(error, known.BusyLoadingError):
        return Retryable("Redis is loading its data")
    if isinstance(error, known.ConnectionError | known.TimeoutError):
        return not_connected(error, "redis", [end.address], "address")
    if "DB index" in text:
        message, hint = (
            f"there is no database {end.database}",
            "see 'databases' in the server's configuration",
        )
        return Invalid(Problem(code="unknown_database", message=message, path="database", hint=hint))
    return Retryable(f"Redis error: {text}")


def wrong_type(stream: str, kind: str) -> Problem:
    """The problem for a key that holds a value of another type than a stream, such as a list."""
    message, hint = (
        f"the key '{stream}' holds a {kind}, not a stream",
        "choose another key, or delete this one",
    )
    return Problem(code="wrong_type", message=message, path="key", hint=hint)


def fields_of(value: bytes | None, key: bytes | None, headers: Mapping[str, str]) -> dict[str, bytes]:
    """The fields of an entry for a value, a key and headers."""
    fields = {VALUE: value or b""}
    if key is not None:
        fields[KEY] = key
    if headers:
        fields[HEADERS] = json.dumps(dict(headers), ensure_ascii=False).encode()
    return fields
