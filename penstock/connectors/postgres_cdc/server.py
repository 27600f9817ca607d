"""Connections to a PostgreSQL server, and the errors for its failures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.errors import Invalid, PenstockError, Problem, Unavailable

if TYPE_CHECKING:
    from psycopg2.extensions import connection
    from psycopg2.extras import LogicalReplicationConnection

OLDEST = 130000
"""PostgreSQL 13: the first version with all catalog columns and settings that are used."""

CONNECT_S = 5
"""Connection timeout in seconds."""

SESSION = {
    # The text format of values.
    "datestyle": "ISO", "intervalstyle": "postgres", "timezone": "UTC", "extra_float_digits": "1",
    "bytea_output": "hex",
    # While the input stream is full, the receiver may wait indefinitely.
    "statement_timeout": "0", "idle_in_transaction_session_timeout": "0", "wal_sender_timeout": "0",
    # The slot of a worker that vanished without disconnecting is released after a minute.
    "tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
}  # fmt: skip

KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A server that vanished without disconnecting is detected after a minute."""


@dataclass(frozen=True)
class Server:
    """The address of a database, and the login."""

    host: str
    port: int
    database: str
    user: str | None = None
    password: str | None = None
    options: Mapping[str, str] | None = None
    """Further parameters of libpq, such as `sslmode`."""

    @property
    def address(self) -> str:
        """The address on which the server listens."""
        return f"{self.host}:{self.port}"

    @classmethod
    def of(cls, url: str, options: Mapping[str, str]) -> Server:
        """The server of a URL such as postgresql://user:password@host:5432/database?sslmode=require."""
        parts = urlsplit(url)
        return cls(
            parts.hostname or "localhost",
            parts.port or 5432,
            unquote(parts.path.lstrip("/")) or "postgres",
            unquote(parts.username) if parts.username else None,
            unquote(parts.password) if parts.password else None,
            {**dict(parse_qsl(parts.query)), **options},
        )

    def connect(self, name: str = "penstock") -> connection:
        """A connection for queries, without a transaction."""
        with said(self):
            made: connection = _client().connect(**self._parameters(name))
        made.autocommit = True
        if made.server_version < OLDEST:
            made.close()
            raise Invalid(
                Problem(
                    code="old_server",
                    message=f"the server is PostgreSQL {made.server_version // 10000}",
                    path="url",
                    hint=f"use PostgreSQL {OLDEST // 10000} or newer",
                )
            )
        return made

    def replicate(self, name: str) -> LogicalReplicationConnection:
        """A connection for replication."""
        with said(self):
            from psycopg2.extras import LogicalReplicationConnection

            made: LogicalReplicationConnection = _client().connect(
                connection_factory=LogicalReplicationConnection, **self._parameters(name)
            )
        return made

    def _parameters(self, name: str) -> dict[str, Any]:
        return {
            "connect_timeout": CONNECT_S,
            **KEEPALIVE,
            **(self.options or {}),
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
            "password": self.password,
            "client_encoding": "UTF8",
            "application_name": name[:63],
            "options": " ".join(f"-c {setting}={value}" for setting, value in SESSION.items()),
        }


def _client() -> Any:
    try:
        import psycopg2
    except ImportError:
        raise Invalid(
            Problem(
                code="missing_client",
                message="the PostgreSQL client for replication is not installed",
                path="type",
                hint="pip install 'penstock[postgres]' where the workers run",
            )
        ) from None
    return psycopg2


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    code: str
    message: str
    hint: str
    path: str
    fatal: bool = True


def _rule(pattern: str, code: str, message: str, hint: str, path: str, *, fatal: bool = True) -> _Rule:
    return _Rule(re.compile(pattern, re.DOTALL), code, message, hint, path, fatal)


RULES = (
    _rule(
        r"could not translate host name",
        "unknown_host",
        "there is no host '{host}'",
        "check the host name",
        "url",
        fatal=False,
    ),
    _rule(
        r"password authentication failed|no password supplied|role \"[^\"]*\" does not exist"
        r"|authentication failed",
        "postgres_login",
        "PostgreSQL rejects the login of '{user}'",
        "check the user and the password",
        "url",
    ),
    _rule(
        r"no pg_hba\.conf entry",
        "postgres_login",
        "pg_hba.conf of the server doesn't allow '{user}' to connect from here: {0}",
        "add a line for the user, the database and the address of the worker, and reload",
        "url",
    ),
    _rule(
        r"database \"([^\"]*)\" does not exist",
        "unknown_database",
        "there is no database '{0}' on {address}",
        "check the name of the database",
        "url",
    ),
    _rule(
        r"invalid (?:connection option|sslmode value|port number)[^\n]*",
        "postgres_setting",
        "the client rejects a setting: {0}",
        "check 'options'",
        "options",
    ),
    _rule(
        r"(?:SSL error|certificate verify failed|server does not support SSL|root certificate file)[^\n]*",
        "postgres_tls",
        "no encrypted connection to {address}: {0}",
        "check sslmode and sslrootcert in 'options'",
        "options",
    ),
    _rule(
        r"must be superuser or replication role|permission denied to (?:start WAL|use replication)",
        "replication_forbidden",
        "the user '{user}' has no REPLICATION privilege",
        "run: ALTER ROLE {user} REPLICATION",
        "url",
    ),
    _rule(
        r"wal_level",
        "wal_level",
        "logical replication is not enabled on the server",
        "set wal_level = logical in postgresql.conf, and restart the server",
        "url",
    ),
    _rule(
        r"all replication slots are in use",
        "no_free_slot",
        "all replication slots of the server are in use",
        "drop an unused slot, or raise max_replication_slots, and restart the server",
        "slot",
        fatal=False,
    ),
    _rule(
        r"number of requested standby connections exceeds max_wal_senders",
        "no_free_sender",
        "all replication connections of the server are in use",
        "raise max_wal_senders, and restart the server",
        "slot",
        fatal=False,
    ),
    _rule(
        r"requested WAL segment \S+ has already been removed|can no longer (?:get changes|access) [^\n]*slot"
        r"|slot [^\n]* has been invalidated",
        "slot_lost",
        "the server removed unread changes: the slot was invalidated",
        "drop the slot with pg_drop_replication_slot, start the pipeline over, and raise "
        "max_slot_wal_keep_size",
        "slot",
    ),
    _rule(
        r"replication slot \"([^\"]*)\" is active for PID",
        "slot_active",
        "the slot '{0}' is being read by another connection",
        "a slot has only one reader: use a separate slot for each pipeline",
        "slot",
        fatal=False,
    ),
    _rule(
        r"permission denied for ([^\n]*)|must be owner of ([^\n]*)",
        "postgres_forbidden",
        "permission denied for user '{user}': {0}",
        "grant SELECT on the tables; to create a publication a user must own its tables: create it as their "
        "owner, and set it in 'publication'",
        "tables",
    ),
    _rule(
        r"publication \"([^\"]*)\" does not exist",
        "unknown_publication",
        "the publication '{0}' does not exist, or did not when the slot was created",
        "drop the slot with pg_drop_replication_slot, and start the pipeline over",
        "publication",
    ),
)
"""Rules for known failures, in the order in which they are tried."""


def explained(error: Exception, server: Server) -> PenstockError:
    """The error for a failure of the client. `Invalid` if a retry can't help."""
    text = str(error).strip()
    named = {"host": server.host, "address": server.address, "user": server.user or "the user"}
    for rule in RULES:
        found = rule.pattern.search(text)
        if found is not None:
            detail = next((group for group in found.groups() if group), None) or found[0]
            message = rule.message.format(_clean(detail, server), **named)
            problem = Problem(code=rule.code, message=message, path=rule.path, hint=rule.hint.format(**named))
            return Invalid(problem) if rule.fatal else Unavailable(problem)
    first = _clean(text, server)
    if getattr(error, "pgcode", None) is not None:
        hint = "see the log of the server"
        message = f"PostgreSQL reports: {first}"
        return Unavailable(Problem(code="postgres_failed", message=message, path="url", hint=hint))
    message = f"no connection to {server.address}: {first}" if first else f"no connection to {server.address}"
    hint = "check the address, and that the server is running and reachable from the worker"
    return Unavailable(Problem(code="postgres_unreachable", message=message, path="url", hint=hint))


def _clean(text: str, server: Server) -> str:
    """The line of a message in which PostgreSQL states the error, without the password."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("HINT", "\t"))]
    line = re.sub(r"^.*?(?:FATAL|ERROR):\s*", "", lines[0].strip()) if lines else ""
    return line.replace(server.password, "…") if server.password else line


@contextmanager
def said(server: Server) -> Iterator[None]:
    """Raise failures of the client as the errors of `explained`."""
    client = _client()
    try:
        yield
    except client.Error as error:
        raise explained(error, server) from None
