"""The client of the REST API for commands."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from penstock.cli.credentials import token_for
from penstock.cli.kinds import PLURALS
from penstock.cli.options import load_settings
from penstock.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PenstockError,
    PreconditionFailed,
    Problem,
    Unauthorised,
    Unavailable,
)

if TYPE_CHECKING:
    import httpx

CONNECT_S = 5.0
ANSWER_S = 200.0
"""Longer than the server itself waits for a starting worker, and then for its validation."""

SILENCE_S = 45.0
"""Longer than the server's heartbeat interval."""

START_S, LOOK_S = 120.0, 0.5
"""Seconds that a command waits for a new revision to start, and between polls."""

PAGE = 500
UNPROVEN = "unproven"
"""The code of the warning that a new revision has not started yet."""

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
ERRORS: tuple[type[PenstockError], ...] = (
    Invalid,
    Unauthorised,
    Forbidden,
    NotFound,
    Conflict,
    PreconditionFailed,
    Unavailable,
)

_LOG_IN = (
    "run `penstock login`, or set PENSTOCK_TOKEN to a token of `penstock token create NAME --role operator`"
)


@dataclass(frozen=True)
class Edited:
    """A saved document."""

    document: dict[str, Any]
    look_at: str | None = None
    """The URL to poll for the start of the new revision; None if the result is known."""


class NoServer(PenstockError):
    """No server is responding, or it is not Penstock."""


def server_url(given: str | None) -> str:
    """The URL of the given server, else of the server that `penstock up` starts on this machine."""
    if given:
        return (given if "://" in given else f"http://{given}").rstrip("/")
    settings = load_settings().settings
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    scheme = "https" if settings.tls.certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


class Client:
    """Sends requests to one server. Responses are JSON; errors are raised with all of their problems."""

    def __init__(self, url: str, answer_s: float = ANSWER_S, token: str | None = None) -> None:
        import httpx

        self.url, self._answer_s = url, answer_s
        token = token or token_for(url)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A proxy from the environment can't reach this machine's own ports.
        proxies = urlsplit(url).hostname not in LOOPBACK
        timeout = httpx.Timeout(answer_s, connect=min(CONNECT_S, answer_s))
        try:
            self._http = httpx.Client(
                base_url=url, timeout=timeout, trust_env=proxies, verify=_trust(url), headers=headers
            )
        except httpx.InvalidURL as error:
            raise NoServer(Problem(code="invalid_url", message=f"{url}: {error}")) from None

    def with_token(self, token: str) -> Client:
        """A client of the same server with another token."""
        return Client(self.url, self._answer_s, token)

    def unknown(self) -> Problem:
        """The problem of a request that the server can't authenticate."""
        message = f"{self.url} does not know you, or your session or token has ended"
        return Problem(code="unauthorised", message=message, hint=_LOG_IN)

    def list(self, kind: str, limit: int | None = None, **filters: Any) -> dict[str, Any]:
        """The documents of a kind: `{items, total}`, from all pages up to `limit`."""
        given = {name: value for name, value in filters.items() if value not in (None, [])}
        items: list[Any] = []
        while True:
            wanted = PAGE if limit is None else min(PAGE, limit - len(items))
            page = self.call("GET", path_of(kind), params={**given, "limit": wanted, "offset": len(items)})
            items += page["items"]
            done = not page["items"] or len(items) >= page["total"]
            if done or (limit is not None and len(items) >= limit):
                return {"items": items, "total": page["total"]}

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """A document, with its state on the server."""
        return dict(self.call("GET", path_of(kind, name)))

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """A document; None if there is none of that name."""
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def create(self, kind: str, raw: Any) -> dict[str, Any]:
        """Save a new document."""
        return dict(self.call("POST", path_of(kind), json=raw))

    def replace(self, kind: str, name: str, raw: Any, *, accept_reset: bool = False) -> Edited:
        """Save a new revision of a document."""
        return self._edit("PUT", path_of(kind, name), raw, accept_reset)

    def delete(self, kind: str, name: str) -> None:
        """Delete a document."""
        self.call("DELETE", path_of(kind, name))

    def act(self, kind: str, name: str, action: str) -> dict[str, Any]:
        """Pause, resume, stop, start or restart a flow."""
        return dict(self.call("POST", path_of(kind, name, action)))

    def about(self, kind: str, name: str, what: str, **params: Any) -> Any:
        """A resource below a document, such as its revisions."""
        given = {name: value for name, value in params.items() if value is not None}
        return self.call("GET", path_of(kind, name, what), params=given)

    def rollback(self, kind: str, name: str, revision: int, *, accept_reset: bool = False) -> Edited:
        """Roll back to an earlier revision, saved as a new one."""
        return self._edit("POST", path_of(kind, name, "rollback"), {"revision": revision}, accept_reset)

    def await_start(self, edited: Edited, seconds: float = START_S) -> dict[str, Any]:
        """Wait until the new revision runs; Conflict if it did not start and was rolled back.

        After `seconds`, the document as saved: it is still unknown whether the revision starts.
        """
        document, until = edited.document, time.monotonic() + seconds
        if edited.look_at is None:
            return document
        while time.monotonic() < until:
            now = dict(self.call("GET", edited.look_at))
            error = now.get("error") or {}
            if now["revision"] > document["revision"] and error.get("code") == "rolled_back":
                raise Conflict(Problem.model_validate(error))
            if now["revision"] != document["revision"] or now["status"] != "active":
                return now
            if now["running_revision"] == document["revision"]:
                return {**now, "warnings": [w for w in document["warnings"] if w["code"] != UNPROVEN]}
            time.sleep(LOOK_S)
        return document

    def _edit(self, method: str, path: str, body: Any, accept_reset: bool) -> Edited:
        params = {"accept_reset": "true"} if accept_reset else {}
        answer = self.fetch(method, path, json=body, params=params)
        return Edited(dict(answer.json()), answer.headers["Location"] if answer.status_code == 202 else None)

    def call(self, method: str, path: str, **request: Any) -> Any:
        """The decoded response to a request; None if it has no content."""
        answer = self.fetch(method, path, **request)
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise NoServer(self._not_penstock(answer)) from None

    def fetch(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The raw response to a request; errors are raised."""
        answer = self.answer(method, path, **request)
        if answer.is_success:
            return answer
        raise self.refusal(answer)

    def answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The raw response to a request, including errors."""
        with self._reaching():
            return self._http.request(method, path, **request)

    @contextmanager
    def follow(self, path: str, **request: Any) -> Iterator[httpx.Response]:
        """A streaming response without an end; there may be long pauses between messages."""
        import httpx

        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        with self._reaching(), self._http.stream("GET", path, timeout=timeout, **request) as answer:
            if not answer.is_success:
                answer.read()
                raise self.refusal(answer)
            yield answer

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.ConnectError:
            message = f"no server is responding at {self.url}"
            hint = "start one with `penstock up`, or pass another URL with --server"
            raise NoServer(Problem(code="no_server", message=message, hint=hint)) from None
        except httpx.HTTPError as error:
            message = f"{self.url}: {error or type(error).__name__}"
            raise NoServer(Problem(code="no_answer", message=message)) from None

    def refusal(self, answer: httpx.Response) -> PenstockError:
        """The error in an unsuccessful response."""
        try:
            body = answer.json()
            problems = [Problem.model_validate(problem) for problem in body["errors"] or [body]]
        except (ValueError, KeyError, TypeError):
            return NoServer(self._not_penstock(answer))
        kind = next((cls for cls in ERRORS if cls.status == answer.status_code), PenstockError)
        if problems[0].code == "unauthorised":
            problems = [self.unknown()]
        return kind(*problems)

    def _not_penstock(self, answer: httpx.Response) -> Problem:
        what = f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.reason_phrase}"
        return Problem(code="unexpected_answer", message=what, hint=f"is {self.url} a Penstock server?")


def _trust(url: str) -> ssl.SSLContext | bool:
    """The TLS verification: for a server on this machine, trust the certificate of the settings."""
    parts = urlsplit(url)
    certificate = load_settings().settings.tls.certificate
    if parts.scheme != "https" or parts.hostname not in LOOPBACK or certificate is None:
        return True
    from penstock.control.questions.addresses import pinned

    return pinned(certificate.read_text(encoding="utf-8"))


def path_of(kind: str, *parts: str) -> str:
    """The URL path of a document, or of a resource below it."""
    return "/".join(["", PLURALS[kind], *(quote(part, safe="") for part in parts)])


def connect(server: str | None, answer_s: float = ANSWER_S) -> Client:
    """A client of the server given by the option `--server`, or of the default server."""
    return Client(server_url(server), answer_s)
