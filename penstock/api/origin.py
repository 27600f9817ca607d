"""Prevents pages of other sites from sending requests through the browser of a user of this server."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.access.refused import RefusedRequests
from penstock.api.errors import error_response
from penstock.control.access.access import Access
from penstock.errors import Problem
from penstock.settings import Settings

_HARMLESS = {"GET", "HEAD", "OPTIONS"}
_OF_BROWSERS = frozenset({b"sec-fetch-site", b"origin"})
_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


class SameOrigin:
    """Denies requests under a host name that is not this server's, and changes by pages of another origin.

    A site can resolve its own name to 127.0.0.1 and then access this server as its own origin: only the
    `Host` header reveals this. Bodies are read regardless of their Content-Type, so a browser can send one
    without a preflight request. Other clients send neither `Origin` nor `Sec-Fetch-Site`.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], access: Access) -> None:
        self.app, self._names = app, cache(lambda: ServerNames.of(settings()))
        self._refused = RefusedRequests(access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or deny it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        names, host = self._names(), _header(scope, b"host")
        if host is not None and not names.include(host):
            await self._refused.note(scope, 421)
            await error_response(421, [_wrong_host(host)])(scope, receive, send)
        elif scope["method"] not in _HARMLESS and _foreign(scope, names):
            await self._refused.note(scope, 403)
            await error_response(403, [_FOREIGN])(scope, receive, send)
        else:
            await self.app(scope, receive, send)


@dataclass(frozen=True)
class ServerNames:
    """The values of `Host` that a server accepts, in lower case."""

    own: frozenset[str]
    """The names of this machine and of the settings: a name, or a name and a port."""
    declared: frozenset[str]
    """The names in `auth.hosts` only."""
    any_address: bool
    """Whether the server listens on all addresses, and accepts any of them: no site can claim an address."""

    @classmethod
    def of(cls, settings: Settings) -> ServerNames:
        """The names of a server with these settings."""
        declared = frozenset(name.lower() for name in settings.auth.hosts)
        own = {*_OF_THIS_MACHINE, *declared}
        address = _address(settings.host)
        if address is None or not address.is_unspecified:
            own.add(f"[{settings.host}]" if ":" in settings.host else settings.host.lower())
        return cls(frozenset(own), declared, address is not None and address.is_unspecified)

    def include(self, host: str) -> bool:
        """Whether a `Host` header names this server."""
        host = host.lower()
        name = _without_port(host)
        if name in self.own or host in self.own:
            return True
        return self.any_address and _address(name.strip("[]")) is not None


def _foreign(scope: Scope, names: ServerNames) -> bool:
    if _OF_BROWSERS.isdisjoint([name for name, _ in scope["headers"]]):
        return False
    headers = Headers(scope=scope)
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    if origin is None:
        return False
    there = urlsplit(origin).netloc.lower()
    if there == headers.get("host", "").lower():
        return False
    # A proxy may replace the Host that the browser uses with another one.
    return there not in names.declared and _without_port(there) not in names.declared


def _header(scope: Scope, wanted: bytes) -> str | None:
    for name, value in scope["headers"]:
        if name == wanted:
            return str(value.decode("latin-1"))
    return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _wrong_host(host: str) -> Problem:
    return Problem(
        code="wrong_host",
        message=f"this server is not known as '{host[:100]}'",
        hint="if it is, add the name to the setting auth.hosts",
    )


_FOREIGN = Problem(
    code="foreign_origin",
    message="requests from pages of another origin are not allowed",
    hint="a proxy in front of Penstock must forward the Host header, or its name must be in auth.hosts",
)
