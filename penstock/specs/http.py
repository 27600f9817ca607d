"""Authentication, headers and URLs of HTTP connections, as declared by users."""

from __future__ import annotations

import re
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from penstock.specs.base import Spec
from penstock.specs.reach import Reach

NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The pattern of valid HTTP header names."""

OWNED = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""Headers that the client sets itself."""


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"'{name}' is not a valid header name")
    if name.lower() in OWNED:
        raise ValueError(f"the header '{name}' is set by the client itself")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        _name(name)
        if any(char < " " or char == "\x7f" for char in value):
            raise ValueError(f"the header '{name}' contains a line break or another control character")
    return headers


def _url(url: str) -> str:
    return _address(url, "http", "https")


def _websocket_url(url: str) -> str:
    return _address(url, "ws", "wss")


def _address(url: str, *schemes: str) -> str:
    if "${" in url:  # validated where the variables are known
        return url
    if not url.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise ValueError(f"the URL must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    try:
        netloc = urlsplit(url).netloc
    except ValueError:
        raise ValueError("not a valid URL") from None
    if "@" in netloc:
        raise ValueError("a user or password in a URL would be visible: use 'auth'")
    if not netloc:
        raise ValueError("the URL has no host")
    return url


HeaderName = Annotated[str, AfterValidator(_name)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
Url = Annotated[str, AfterValidator(_url), Reach("url")]
WebsocketUrl = Annotated[str, AfterValidator(_websocket_url), Reach("url")]


class Basic(Spec):
    """A user and a password."""

    username: str = Field(description="User name.")
    password: str = Field(description="Password; use `${NAME}` to read it from an environment variable.")


class OAuth2(Spec):
    """A token that is fetched with the client credentials grant, and renewed when it expires."""

    token_url: Url = Field(description="URL of the token endpoint.")
    client_id: str = Field(min_length=1, description="Client id.")
    client_secret: str = Field(
        description="Client secret; use `${NAME}` to read it from an environment variable."
    )
    scope: str | None = Field(default=None, description="Scopes to request, separated by spaces.")


class Auth(Spec):
    """Authentication of requests: exactly one of these."""

    basic: Basic | None = Field(
        default=None, description="HTTP basic authentication with a user and a password."
    )
    bearer: str | None = Field(default=None, min_length=1, description="Bearer token.")
    oauth2: OAuth2 | None = Field(
        default=None, description="Token from the OAuth 2 client credentials grant."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(each is not None for each in (self.basic, self.bearer, self.oauth2)) != 1:
            raise ValueError("set exactly one of 'basic', 'bearer' and 'oauth2'")
        return self
