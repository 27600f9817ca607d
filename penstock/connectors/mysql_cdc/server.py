"""Connections to a MySQL or MariaDB server, and their errors."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.specs.base import Component, Spec
from penstock.specs.reach import DatabaseUrl, FilePath, ServerAddress

if TYPE_CHECKING:
    import pymysql

CONNECT_S = 5
"""Seconds that a server may take to accept a connection."""

READ_S = 60
"""Seconds that a server may take to respond."""

PORT = 3306

LOGIN = (1044, 1045, 1698)
DENIED = (1142, 1143, 1227, 1290)
GONE = 1236
"""The error number of a server that can't send its log from the requested position."""


class MySqlTls(Spec):
    """TLS settings of a connection. Files are read on the machine where the flow runs."""

    ca_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file of trusted certificate authorities. Absent: those of the system.",
    )
    verify_hostname: bool = Field(
        default=True, description="Whether the server's certificate must match its host name."
    )

    def context(self) -> ssl.SSLContext:
        """The TLS context of a connection."""
        made = ssl.create_default_context(cafile=self.ca_file)
        made.check_hostname = self.verify_hostname
        return made


class MySqlServer(Component):
    """A MySQL or MariaDB server."""

    url: DatabaseUrl | None = Field(
        default=None,
        min_length=1,
        description="Address of the server, such as `mysql://reader:${PASSWORD}@db.example:3306`. "
        "Percent-encode special characters in the password, such as `%40`. A database at the end applies "
        "to `tables` without one. Alternatively, set `host` and the fields after it.",
    )
    host: ServerAddress | None = Field(default=None, min_length=1, description="Instead of `url`: host name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Port; absent: 3306.")
    user: str | None = Field(default=None, min_length=1, description="User name.")
    password: str | None = Field(
        default=None, description="Password; use `${NAME}` to read it from an environment variable."
    )
    tls: MySqlTls | None = Field(
        default=None, description="Use TLS; `{}` uses the trust store of the system."
    )

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.host is None):
            raise ValueError("set either 'url' or 'host'")
        others = [name for name in ("port", "user", "password") if getattr(self, name) is not None]
        if self.url is not None and others:
            raise ValueError(f"put '{others[0]}' into 'url', or set 'host' instead of 'url'")
        if self.url is not None and "${" not in self.url:
            parts = urlsplit(self.url)
            if parts.scheme not in ("mysql", "mariadb") or not parts.hostname:
                raise ValueError("'url' is not a valid address: use mysql://user:password@host:3306")
            if parts.query or parts.path.count("/") > 1:
                raise ValueError("'url' must end with the port or the name of a database")
        return self

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        if self.url is None:
            return self.host or "", self.port or PORT
        parts = urlsplit(self.url)
        try:
            return parts.hostname or "", parts.port or PORT
        except ValueError:
            return parts.hostname or "", PORT

    @property
    def database(self) -> str | None:
        """The database in the URL, if there is one."""
        return unquote(urlsplit(self.url or "").path.strip("/")) or None

    @property
    def place(self) -> str:
        """The field that names the server, for paths of problems."""
        return "url" if self.url is not None else "host"

    def connect(self) -> pymysql.Connection[Any]:
        """A new connection that returns values as text or bytes. Raises `Invalid` or `Unavailable`."""
        module = client()
        from pymysql.converters import conversions

        host, port = self.address
        user, password = self.user, self.password
        if self.url is not None:
            parts = urlsplit(self.url)
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
        try:
            made: pymysql.Connection[Any] = module.connect(
                host=host,
                port=port,
                user=user,
                password=password or "",
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                write_timeout=READ_S,
                ssl=None if self.tls is None else self.tls.context(),
                conv={kind: made for kind, made in conversions.items() if not isinstance(kind, int)},
                init_command="SET SESSION time_zone = '+00:00', sql_mode = ''",
                program_name="penstock",
            )
        except (module.MySQLError, OSError) as error:
            raise explained(error, self) from None
        return made


def client() -> Any:
    """The module `pymysql`. Raises `Invalid` if it or the library for the log is not installed."""
    try:
        import pymysql
        import pymysqlreplication  # noqa: F401
    except ImportError:
        raise Invalid(
            Problem(
                code="client_missing",
                message="the client libraries of MySQL are not installed",
                path="type",
                hint="pip install 'penstock[mysql]' where the flow runs",
            )
        ) from None
    return pymysql


def explained(error: BaseException, server: MySqlServer) -> PenstockError:
    """The error for a client exception, with paths in the document. `Invalid` if a retry can't help."""
    code, text = _parts(error)
    host, port = server.address
    if code in LOGIN:
        return Invalid(
            Problem(
                code="login_failed",
                message=f"{host}:{port} rejects the user or the password",
                path=server.place,
                hint="check the user, the password, and the hosts the user may connect from",
            )
        )
    if code in DENIED:
        return Invalid(
            Problem(
                code="permission_denied",
                message=f"permission denied: {text}",
                path=server.place,
                hint="GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the user; on MariaDB "
                "from 10.5 on also BINLOG MONITOR",
            )
        )
    hint = "check the port, and that the server is running and reachable from the worker"
    return Unavailable(
        Problem(
            code="unreachable",
            message=f"no connection to {host}:{port}: {text}",
            path=server.place,
            hint=hint,
        )
    )


def refused(code: int, text: str, server: MySqlServer) -> PenstockError:
    """The error for a failure that a server has reported instead of sending its log."""
    if code != GONE:
        return explained(RuntimeError(code, text), server)
    if "same server" in text:
        problem = Problem(
            code="server_id_taken",
            message=f"another replica uses the same server_id: {text}",
            path="server_id",
            hint="use a unique server_id for each reader of a server, including replicas",
        )
        return Unavailable(problem)
    if "max_allowed_packet" in text:
        hint = "raise max_allowed_packet on the server"
        return Invalid(Problem(code="event_too_large", message=text, path=server.place, hint=hint))
    return Invalid(_gone(text))


def _gone(text: str) -> Problem:
    return Problem(
        code="position_gone",
        message=f"the server can't send its log from the stored position: {text}",
        path="position",
        hint="changes were lost because the binary log was purged or reset: start the pipeline over to take "
        "a new snapshot, and keep logs longer (binlog_expire_logs_seconds)",
    )


def _parts(error: BaseException) -> tuple[int, str]:
    """The number of an error, and its text without class names."""
    args: tuple[Any, ...] = error.args
    code = args[0] if args and isinstance(args[0], int) else 0
    text = str(args[1]) if len(args) > 1 else str(error)
    if code == 2003 and "(" in text:  # Can't connect to MySQL server on 'host' ([Errno 111] …)
        text = text.rpartition("(")[2].rstrip(")").rpartition("] ")[2]
    return code, text.lower() if code == 2003 else text
