"""Calls of an HTTP service, with retries, a rate limit and a cache."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pydantic_core
from cachetools import TTLCache
from pydantic import Field

from penstock.errors import PenstockError
from penstock.frames.http.answers import retry_after
from penstock.processors.support.rates import Bucket
from penstock.specs.base import Spec

if TYPE_CHECKING:
    import httpx

SUCCESS = range(200, 300)


class Retry(Spec):
    """The retry policy of HTTP calls."""

    attempts: int = Field(default=3, ge=1, description="Maximum number of attempts.")
    statuses: list[int] = Field(
        default=[408, 429, 500, 502, 503, 504], description="Status codes that are retried."
    )
    backoff_ms: int = Field(
        default=200, ge=0, description="Wait before the first retry; doubles with each retry, with jitter."
    )
    max_backoff_ms: int = Field(
        default=30_000, ge=0, description="Longest wait between attempts, even if `Retry-After` is longer."
    )


class Cache(Spec):
    """Cache of responses, in each Python process of Spark."""

    ttl_ms: int = Field(default=60_000, ge=1, description="How long a response is cached.")
    max_entries: int = Field(default=10_000, ge=1, description="Maximum number of cached responses.")


@dataclass(frozen=True)
class Request:
    """One call."""

    method: str
    url: str
    body: bytes | None = None

    @property
    def shown(self) -> str:
        """The call for messages, without the query string, which may contain secrets."""
        return f"{self.method} {self.url.partition('?')[0]}"


@dataclass(frozen=True)
class Answer:
    """The response of a service. `problem` is the reason if there is none, or if it is unusable."""

    status: int | None = None
    body: bytes = b""
    problem: str | None = None
    code: str = "http_failed"


Call = Callable[[Request], Answer]


@dataclass
class Service:
    """A service, shared by the tasks of one process."""

    client: httpx.Client
    headers: Mapping[str, str]
    retry: Retry
    limit: Bucket | None = None
    cache: Cache | None = None
    _known: MutableMapping[Request, Answer] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.cache is not None:
            self._known = TTLCache(self.cache.max_entries, self.cache.ttl_ms / 1000)

    def call(self, request: Request) -> Answer:
        """The response of the service, or a cached response."""
        if self._known is None:
            return self._tried(request)
        with self._lock:
            known = self._known.get(request)
        if known is None:
            known = self._tried(request)
            if known.problem is None:
                with self._lock:
                    self._known[request] = known
        return known

    def _tried(self, request: Request) -> Answer:
        answer = Answer()
        for attempt in range(1, self.retry.attempts + 1):
            answer, asked_s = self._once(request)
            again = answer.status is None or answer.status in self.retry.statuses
            if answer.problem is None or not again or attempt == self.retry.attempts:
                break
            time.sleep(self._pause(attempt, asked_s))
        return answer

    def _once(self, request: Request) -> tuple[Answer, float | None]:
        """The response, and the seconds that the service asks to wait before a retry."""
        import httpx

        if self.limit is not None:
            self.limit.wait(1)
        content_type = {"Content-Type": "application/json"} if request.body is not None else {}
        try:
            response = self.client.request(
                request.method, request.url, content=request.body, headers={**content_type, **self.headers}
            )
        except httpx.TimeoutException:
            return Answer(problem=f"{request.shown} did not answer in time", code="http_timeout"), None
        except PenstockError as error:  # from the authentication
            return Answer(problem=error.problems[0].message, code=error.problems[0].code), None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Answer(problem=f"{request.shown} failed: {error or type(error).__name__}"), None
        return answer_of(request, response.status_code, response.content), retry_after(response.headers)

    def _pause(self, attempt: int, asked_s: float | None) -> float:
        longest = self.retry.max_backoff_ms / 1000
        if asked_s is not None:
            return min(asked_s, longest)
        doubled: float = min(self.retry.backoff_ms / 1000 * 2 ** (attempt - 1), longest)
        return doubled * random.uniform(0.5, 1.0)  # callers that failed together do not retry together


def answer_of(request: Request, status: int, body: bytes) -> Answer:
    """The answer for a status and a body; it is usable if the status is a success."""
    problem = None if status in SUCCESS else f"{request.shown} answered {status}"
    return Answer(status, body, problem, "http_status")


def given_answers(given: Any) -> Call:
    """The responses that a test run provides: a list in order, or a map by URL."""
    turn = iter(given) if isinstance(given, list) else None
    by_url = given if isinstance(given, Mapping) else {}

    def call(request: Request) -> Answer:
        nothing = object()
        found = next(turn, nothing) if turn is not None else by_url.get(request.url, nothing)
        if found is nothing:
            return Answer(problem=f"the test doesn't define what {request.shown} answers", code="no_answer")
        status, body = 200, found
        if isinstance(found, Mapping) and "status" in found and found.keys() <= {"status", "body"}:
            status, body = int(found["status"]), found.get("body")
        text = body.encode() if isinstance(body, str) else pydantic_core.to_json(body)
        return answer_of(request, status, text)

    return call
