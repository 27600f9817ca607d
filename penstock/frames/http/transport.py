"""Connections to addresses that the policy has checked.

A name is resolved once, all of its addresses are checked, and the connection is made to one of them, so that
neither DNS rebinding nor a redirect can lead to another address.
"""

from __future__ import annotations

import socket
import ssl
import typing
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from penstock.errors import Invalid
from penstock.policy import Policy
from penstock.policy.policy import address_problem

FIELD = "url"


def checked_addresses(policy: Policy, host: str) -> list[str]:
    """The addresses of a host; raises `Invalid` if one is not allowed, `gaierror` if none is found."""
    found = policy.addresses.checked(host)
    if isinstance(found, str):
        raise Invalid(address_problem(host, found, FIELD))
    if not found:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return found


def connected(policy: Policy, host: str, port: int, timeout_s: float) -> socket.socket:
    """A connection to the first checked address of a host that responds."""
    failure: OSError | None = None
    for address in checked_addresses(policy, host):
        try:
            return socket.create_connection((address, port), timeout_s)
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def proxy_for(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for a host."""
    return None if proxy_bypass(host) else getproxies().get(scheme)


class CheckedTransport(httpx.BaseTransport):
    """Sends requests to checked addresses only, through the proxy of the environment if there is one."""

    def __init__(self, policy: Policy, verify: ssl.SSLContext | bool, limits: httpx.Limits) -> None:
        self._policy, self._verify, self._limits = policy, verify, limits
        self._direct = _Direct(policy, verify=verify, limits=limits)
        self._proxied: dict[str, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        proxy = proxy_for(request.url.scheme, host)
        if proxy is None:
            return self._direct.handle_request(request)
        if (address := self._policy.addresses.refused(host, resolve=True)) is not None:
            raise Invalid(address_problem(host, address, FIELD))
        if proxy not in self._proxied:
            made = httpx.HTTPTransport(verify=self._verify, limits=self._limits, proxy=proxy)
            self._proxied[proxy] = made
        return self._proxied[proxy].handle_request(request)

    def close(self) -> None:
        for each in (self._direct, *self._proxied.values()):
            each.close()


class _Direct(httpx.HTTPTransport):
    """A transport with its own network backend, for which httpx has no parameter."""

    def __init__(self, policy: Policy, *, verify: ssl.SSLContext | bool, limits: httpx.Limits) -> None:
        super().__init__(verify=verify, limits=limits)
        self._pool.close()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(verify=verify),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(policy),
        )


class _Backend(httpcore.NetworkBackend):
    """Opens connections to checked addresses; TLS still verifies the host name."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._system = policy, httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: typing.Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = checked_addresses(self._policy, host)
        except socket.gaierror as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in addresses[:-1]:
            try:
                return self._system.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._system.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
