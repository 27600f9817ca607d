"""HTTP statuses: whether they concern the request, the settings, or the service."""

from __future__ import annotations

from collections.abc import Collection

from penstock.connectors.http.exchange import Answer
from penstock.errors import Backpressure, Invalid, Problem, Unavailable
from penstock.frames.http.answers import retry_after

AGAIN = frozenset({408, 425})
"""Statuses below 500 that are temporary: request timeout, too early."""

PAUSE_S = 1.0
"""Seconds to wait after `429 Too Many Requests` without `Retry-After`."""

_LOGIN = "check 'auth', and whether the token or the password is still valid"
_ADDRESS = "check the URL"

SETTINGS = {
    401: ("http_unauthorized", "rejects the credentials", "auth", _LOGIN),
    403: (
        "http_forbidden",
        "denies access",
        "auth",
        "grant the user access, or check 'auth' and the URL",
    ),
    404: ("http_not_found", "has no resource at this URL", "url", _ADDRESS),
    405: ("http_method", "doesn't support this method", "method", "check 'method' and the URL"),
    407: ("http_proxy", "requires authentication at a proxy", "url", "check HTTPS_PROXY of the worker"),
    410: ("http_gone", "no longer has this resource", "url", _ADDRESS),
    415: ("http_media_type", "doesn't accept this content type", "headers", "check 'headers' and 'body'"),
}
"""Statuses that every request would get until a setting is changed: code, text, field and hint."""

BY_ADDRESS = frozenset({403, 404, 410})
"""Statuses in `SETTINGS` that depend on the URL, and thus on the event if the URL contains columns."""


def judge(answer: Answer, where: str, *, again: Collection[int] = AGAIN) -> None:
    """Raise an error for a response that is not about the content of the request.

    `Backpressure` if the server asks to wait, `Unavailable` if a retry may help, and `Invalid` if a setting
    has to be changed. Returns if the request was accepted, or rejected for its content.
    """
    status, wait = answer.status, retry_after(answer.headers)
    if status == 429 or (status == 503 and wait is not None):
        raise Backpressure(f"{where} asks to slow down: {status}", PAUSE_S if wait is None else wait)
    if status >= 500 or status in again:
        message = _told(f"{where} responded with {status}", answer)
        hint = "check the log of the service; the request is retried"
        raise Unavailable(Problem(code="http_failed", message=message, path="url", hint=hint))
    if 300 <= status < 400 and status != 304:
        message = f"{where} responded with {status}, a redirect"
        hint = "redirects are not followed: use the target URL"
        raise Invalid(Problem(code="http_redirect", message=message, path="url", hint=hint))
    if status in SETTINGS:
        raise Invalid(setting(answer, where))


def setting(answer: Answer, where: str) -> Problem:
    """The problem for a status in `SETTINGS`."""
    code, text, path, hint = SETTINGS[answer.status]
    message = _told(f"{where} {text} ({answer.status})", answer)
    return Problem(code=code, message=message, path=path, hint=hint)


def _told(text: str, answer: Answer) -> str:
    return f"{text}: {answer.text}" if answer.text else text
