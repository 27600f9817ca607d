"""Connections to servers: addresses, TLS, logins, and client libraries that may not be installed."""

from __future__ import annotations

import importlib
import re
import select
import ssl
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, Field

from penstock.connectors.probe import unreachable
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.specs.base import Spec
from penstock.specs.reach import Reach
from penstock.specs.tls import Tls, reason_of

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\],]+):[0-9]{1,5}")
"""A host, or an IPv6 address in brackets, and a port."""


def _is_address(text: str) -> str:
    if "${" not in text and not ADDRESS.fullmatch(text):
        raise ValueError(f"'{text}' is not a valid address: use host:port, such as localhost:1234")
    return text


Address = Annotated[str, AfterValidator(_is_address), Reach("address")]
"""A server as `host:port`."""


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of an address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class Login(Spec):
    """The user name and password for the server."""

    username: str = Field(min_length=1, description="User name.")
    password: str = Field(description="Password; use `${NAME}` to read it from an environment variable.")


class Security(Spec):
    """Encryption and authentication of connections. Absent: neither."""

    tls: Tls | None = Field(default=None, description="Use TLS; `{}` uses the trust store of the system.")
    login: Login | None = Field(default=None, description="Authentication with a user name and a password.")


def context_of(security: Security | None) -> ssl.SSLContext | None:
    """The TLS settings of a connection; None if it is not encrypted."""
    return security.tls.context("security.tls") if security is not None and security.tls is not None else None


def login_of(security: Security | None) -> tuple[str, str] | None:
    """The user and the password of a connection."""
    if security is None or security.login is None:
        return None
    return security.login.username, security.login.password


class HasFileno(Protocol):
    """A file, a socket, or an object that wraps one."""

    def fileno(self) -> int: ...


def wait_readable(file: HasFileno | int, seconds: float) -> bool:
    """Wait until a file or socket has bytes to read or has ended; false if neither happens in time.

    `select.select` fails for descriptors above 1,023, which occur in a worker with many flows.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def library(module: str, extra: str) -> Any:
    """A client library; raises `Invalid` with the extra to install if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"the Python package for '{extra}' is not installed where the flow runs"
        hint = f"pip install 'penstock[{extra}]'"
        raise Invalid(Problem(code="missing_library", message=message, path="type", hint=hint)) from None


def refused_login(system: str, name: str, reason: str = "") -> Invalid:
    """The error for a login that a server rejects; `system` prefixes its code, `name` appears in messages."""
    detail = f": {reason}" if reason else ""
    hint = "check the user and the password"
    return Invalid(
        Problem(
            code=f"{system}_login",
            message=f"{name} rejects the login{detail}",
            path="security.login",
            hint=hint,
        )
    )


def not_connected(error: BaseException, system: str, addresses: Sequence[str], path: str) -> PenstockError:
    """The error for a connection that can't be made or was lost. `path` is the field with the address."""
    where = ", ".join(addresses)
    tls = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None)
    if tls is not None:
        message = f"no encrypted connection to {where}: {reason_of(tls)}"
        hint = (
            "check security.tls, and whether the server requires a client certificate or doesn't support TLS"
        )
        problem = Problem(code=f"{system}_tls", message=message, path="security.tls", hint=hint)
        final = isinstance(tls, ssl.SSLCertVerificationError) or tls.reason == "WRONG_VERSION_NUMBER"
        return Invalid(problem) if final else Unavailable(problem)
    if problems := unreachable(addresses, path):
        return Unavailable(*problems)
    message = f"no connection to {where}: {reason_of(error)}"
    hint = "check that the server is running, the port, and whether it requires TLS"
    return Unavailable(Problem(code=f"{system}_unreachable", message=message, path=path, hint=hint))


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
