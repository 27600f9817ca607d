"""Clients of HTTP services, with the declared authentication and encryption."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator

import httpx

from penstock.errors import Invalid, Problem, Unavailable
from penstock.frames.http.answers import shown
from penstock.frames.http.transport import CheckedTransport
from penstock.policy import Policy
from penstock.specs.http import Auth, OAuth2
from penstock.specs.tls import Tls

EARLY_S = 30.0
"""Seconds before its expiry at which a token is renewed, so that no token expires in transit."""

LIFE_S = 3600.0
"""Seconds for which a token is used if the server does not return an expiry."""


def client_of(
    policy: Policy, auth: Auth | None, tls: Tls | None, timeout_s: float, connections: int
) -> httpx.Client:
    """A client that follows no redirects and connects only to addresses that the policy allows.

    Raises `Invalid` if a file of `tls` cannot be used.
    """
    verify = tls.context() if tls is not None else True
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=connections)
    transport = CheckedTransport(policy, verify, limits)
    return httpx.Client(auth=_login(auth), timeout=timeout_s, transport=transport)


def authorization(policy: Policy, auth: Auth, timeout_s: float) -> str:
    """The value of the header `Authorization`, for a connection that does not use `httpx`."""
    request = httpx.Request("GET", "http://localhost/")
    login = _login(auth)
    assert login is not None
    if not isinstance(login, ClientCredentials):
        return str(next(login.sync_auth_flow(request)).headers["Authorization"])
    return f"Bearer {login.fetched(policy, timeout_s)}"


def _login(auth: Auth | None) -> httpx.Auth | None:
    if auth is None:
        return None
    if auth.basic is not None:
        return httpx.BasicAuth(auth.basic.username, auth.basic.password)
    if auth.bearer is not None:
        return _Bearer(auth.bearer)
    assert auth.oauth2 is not None
    return ClientCredentials(auth.oauth2)


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self.header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = self.header
        yield request


class ClientCredentials(httpx.Auth):
    """Authenticates with a token, which is fetched, cached until it expires, and renewed if rejected."""

    def __init__(self, spec: OAuth2) -> None:
        self.spec = spec
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the request with a token; retry once with a new token if it is rejected."""
        for last in (False, True):
            token = self._kept()
            if not token:
                response = yield self._asking(request)
                response.read()
                token = self._taken(response)
            request.headers["Authorization"] = f"Bearer {token}"
            response = yield request
            if response.status_code != 401 or last:
                return
            self._forget(token)

    def fetched(self, policy: Policy, timeout_s: float) -> str:
        """A new token."""
        where = shown(self.spec.token_url)
        try:
            with client_of(policy, None, None, timeout_s, 1) as client:
                asking = self._asking(client.build_request("GET", self.spec.token_url))
                return self._taken(client.send(asking))
        except httpx.HTTPError as error:
            message, hint = f"no response from {where}: {error}", "check token_url"
            path = "auth.oauth2.token_url"
            raise Unavailable(Problem(code="http_login", message=message, path=path, hint=hint)) from None

    def _kept(self) -> str:
        with self._lock:
            return self._token if time.monotonic() < self._until else ""

    def _forget(self, token: str) -> None:
        with self._lock:
            if self._token == token:
                self._until = 0.0

    def _asking(self, request: httpx.Request) -> httpx.Request:
        form = {"grant_type": "client_credentials"}
        if self.spec.scope is not None:
            form["scope"] = self.spec.scope
        asking = httpx.Request(
            "POST", self.spec.token_url, data=form, headers={"Accept": "application/json"},
            extensions=dict(request.extensions),  # including the timeout
        )  # fmt: skip
        login = httpx.BasicAuth(self.spec.client_id, self.spec.client_secret)
        return next(login.auth_flow(asking))

    def _taken(self, response: httpx.Response) -> str:
        """Cache and return the token of a response."""
        status, where = response.status_code, shown(self.spec.token_url)
        if status in (400, 401, 403):
            message = f"{where} issued no token: it responded with {status}"
            hint = "check client_id, client_secret and scope"
            raise Invalid(Problem(code="http_login", message=message, path="auth.oauth2", hint=hint))
        try:
            found = response.json()
            token, seconds = str(found["access_token"]), float(found.get("expires_in") or LIFE_S)
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{where} issued no token: it responded with {status}"
            hint = "check token_url"
            problem = Problem(code="http_login", message=message, path="auth.oauth2.token_url", hint=hint)
            raise Unavailable(problem) from None
        with self._lock:
            self._token = token
            self._until = time.monotonic() + max(1.0, seconds - min(EARLY_S, seconds / 2))
        return token
