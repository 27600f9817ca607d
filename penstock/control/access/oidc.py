"""Log-in with an OpenID Connect provider: the authorization code flow with PKCE."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import jwt

from penstock.control.access.roles import rank
from penstock.control.access.users import NAME, User, Users
from penstock.errors import Forbidden, Problem, Unavailable
from penstock.settings.guard import OidcSettings

ANSWER_S = 10.0
"""Seconds to wait for a response of the provider."""

FRESH_S = 3600.0
"""Seconds for which the provider's metadata and keys are cached."""

LEEWAY_S = 60
"""Seconds by which the clocks of the provider and of this machine may differ."""

SCOPES = "openid profile email"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Accepted signature algorithms: asymmetric only, so that only the provider has the private key."""

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class ProviderFailed(Unavailable):
    """The provider is not responding, or its response is invalid."""


@dataclass(frozen=True)
class Pending:
    """A log-in in progress: the values that its completion is checked against. Stored by the browser."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> Pending:
        """A new log-in, with random values."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    @classmethod
    def parse(cls, text: str) -> Pending | None:
        """The log-in that a browser has stored; None if the text is invalid."""
        parts = text.split(".")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    def __str__(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"


class Provider:
    """The OpenID Connect provider of the settings."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._mutex = threading.Lock()
        self._description: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, jwt.PyJWKSet] | None = None

    def start(self, pending: Pending, redirect_uri: str) -> str:
        """The URL at the provider where a browser logs in."""
        challenge = hashlib.sha256(pending.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPES,
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        page = self._described("authorization_endpoint")
        return f"{page}{'&' if '?' in page else '?'}{urlencode(asked)}"

    def finish(self, pending: Pending, code: str, redirect_uri: str) -> Mapping[str, Any]:
        """The claims of the logged-in user; Forbidden if they can't be trusted."""
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": str(self._settings.client_id),
            "code_verifier": pending.verifier,
        }
        secret, basic = self._settings.client_secret, None
        if secret is not None:
            methods = self._describe().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            if "client_secret_basic" in methods:
                basic = (str(self._settings.client_id), secret)
            else:
                given["client_secret"] = secret
        answer = self._ask("POST", self._described("token_endpoint"), data=given, auth=basic)
        return self._claims(str(answer.get("id_token", "")), pending.nonce)

    def user(self, users: Users, claims: Mapping[str, Any]) -> User:
        """The user for the claims, with the role that they grant; Forbidden or Conflict if there is none."""
        settings = self._settings
        subject = f"{settings.issuer} {claims['sub']}"
        name = _name(claims)
        role = None
        if settings.role_claim is not None:
            role = _role(claims, settings) or settings.default_role
            if role is None:
                raise Forbidden(
                    Problem(
                        code="no_role",
                        message=f"the provider gives '{name}' no role here",
                        hint="map a value of the claim in auth.oidc.roles, or set auth.oidc.default_role",
                    )
                )
        return users.log_in_from_provider(subject, name, role, settings.default_role)

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=ALGORITHMS,
                audience=self._settings.client_id,
                issuer=self._settings.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise _untrusted(str(error)) from None
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise _untrusted("it was made for another log-in")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise _untrusted("it was made for another client")
        return claims

    def _key(self, token: str) -> jwt.PyJWK:
        wanted = jwt.get_unverified_header(token).get("kid")
        for fresh in (False, True):  # the provider may have rotated its keys
            keys = self._key_set(fresh=fresh).keys
            found = [key for key in keys if wanted is None or key.key_id == wanted]
            if len(found) == 1 or (found and wanted is not None):
                return found[0]
        raise jwt.InvalidKeyError("the provider has no key with that id")

    def _key_set(self, *, fresh: bool) -> jwt.PyJWKSet:
        with self._mutex:
            known = self._keys
        if known is not None and not fresh and time.monotonic() - known[0] < FRESH_S:
            return known[1]
        found = jwt.PyJWKSet.from_dict(self._ask("GET", self._described("jwks_uri")))
        with self._mutex:
            self._keys = time.monotonic(), found
        return found

    def _describe(self) -> dict[str, Any]:
        with self._mutex:
            known = self._description
        if known is not None and time.monotonic() - known[0] < FRESH_S:
            return known[1]
        issuer = str(self._settings.issuer)
        found = self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise _failed(f"it calls itself {found.get('issuer')!r}, and auth.oidc.issuer is {issuer!r}")
        with self._mutex:
            self._description = time.monotonic(), found
        return found

    def _described(self, name: str) -> str:
        found = self._describe().get(name)
        if not isinstance(found, str):
            raise _failed(f"its description has no {name}")
        return found

    def _ask(self, method: str, url: str, **request: Any) -> dict[str, Any]:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in _THIS_MACHINE:
            raise _failed(f"{url} is not encrypted")
        try:
            answer = httpx.request(method, url, timeout=ANSWER_S, **request)
            answer.raise_for_status()
            found = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise _failed(str(error) or type(error).__name__) from None
        if not isinstance(found, dict):
            raise _failed(f"{url} answers with no JSON object")
        return found


def _name(claims: Mapping[str, Any]) -> str:
    """The name of a new user: the first claim that is a valid name."""
    named = (str(claims.get(claim, "")) for claim in ("preferred_username", "email", "sub"))
    return next((name for name in named if NAME.fullmatch(name)), str(claims["sub"]))


def _role(claims: Mapping[str, Any], settings: OidcSettings) -> str | None:
    value: Any = claims
    claim = str(settings.role_claim)
    if claim in claims:  # such as a URL, which contains dots itself
        value = claims[claim]
    else:
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    given = value if isinstance(value, list) else [value]
    roles = [settings.roles[str(each)] for each in given if str(each) in settings.roles]
    return max(roles, key=rank, default=None)


def _untrusted(why: str) -> Forbidden:
    return Forbidden(Problem(code="oidc_failed", message=f"the provider's ID token is not valid: {why}"))


def _failed(why: str) -> ProviderFailed:
    return ProviderFailed(Problem(code="oidc_failed", message=f"the OpenID Connect provider: {why}"))
