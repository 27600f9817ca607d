"""The credentials of a request: a token, or the cookie of a session."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import Response
from starlette.types import Scope

COOKIE = "penstock_session"
_BEARER = "bearer "


@dataclass(frozen=True)
class Credentials:
    """The secret of a request: a token, or the secret of a session."""

    secret: str
    is_token: bool


def credentials(scope: Scope) -> Credentials | None:
    """The token of a request, else the secret of its session."""
    cookies = ""
    for name, value in scope["headers"]:
        if name == b"authorization":
            text = value.decode("latin-1")
            token = text[len(_BEARER) :].strip() if text.lower().startswith(_BEARER) else ""
            return Credentials(token, is_token=True)
        if name == b"cookie":
            cookies = value.decode("latin-1")
    secret = cookie_parser(cookies).get(COOKIE) if cookies else None
    return Credentials(secret, is_token=False) if secret else None


def give_cookie(request: HTTPConnection, response: Response, secret: str) -> None:
    """Store the secret of a session in the browser: for this server only, inaccessible to scripts."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, secret, path="/", secure=secure, httponly=True, samesite="strict")


def take_cookie(request: HTTPConnection, response: Response) -> None:
    """Delete the session cookie in the browser."""
    secure = request.url.scheme == "https"
    response.delete_cookie(COOKIE, path="/", secure=secure, httponly=True, samesite="strict")
