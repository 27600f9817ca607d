"""Sends the requests of a batch, and splits requests that are rejected."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, NamedTuple

from penstock.connectors.base import DeliveryId
from penstock.connectors.http.exchange import Answer, exchange
from penstock.connectors.http.requests import Plan, Refusal, Request, merged, signature, unfit
from penstock.connectors.http.statuses import BY_ADDRESS, judge, setting
from penstock.connectors.http.target import parted
from penstock.connectors.messages.sink import Message, MessageWriter
from penstock.errors import Backpressure, Invalid, Retryable
from penstock.frames.http.answers import shown
from penstock.frames.http.clients import client_of
from penstock.policy import Policy
from penstock.specs.templates import columns_of, filled

if TYPE_CHECKING:
    from penstock.connectors.http.sink import Done, HttpSink

LOOK_S = 0.1
"""Seconds between checks whether the writer was canceled."""

IN_A_ROW = 100
"""Consecutive requests rejected for their URL after which the template of the URL must be wrong."""

EVENTS = 500
"""Default maximum number of events per request."""

ENDED = "the run ended before all requests were sent"


class HttpWriter(MessageWriter):
    """Sends the requests of a batch: lanes concurrently, the requests of a lane one after the other."""

    def __init__(self, sink: HttpSink, policy: Policy) -> None:
        self.sink = sink
        self.timeout_s = sink.timeout_ms / 1000
        self.plan = Plan(
            sink.body,
            1 if sink.body == "event" else sink.max_events or EVENTS,
            sink.max_bytes,
            sink.concurrency,
        )
        fixed = {name: filled(text, {}) for name, text in sink.headers.items() if name not in sink.by_event}
        self.headers = merged(_content_type(sink), fixed)
        self.by_address = BY_ADDRESS if any(columns_of(sink.url)) else frozenset()
        self.client = client_of(policy, sink.auth, sink.tls, self.timeout_s, sink.concurrency)
        self._pool = ThreadPoolExecutor(sink.concurrency, "http sink")
        self._cancelled = threading.Event()
        self._accepted_at = 0.0
        self._lost = 0
        """Number of consecutive requests that were rejected for their URL."""

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> Iterable[Refusal]:
        refused = [
            (number, *reason)
            for number, message in enumerate(messages)
            if (reason := unfit(message, self.sink.body)) is not None
        ]
        bad = {number for number, _, _ in refused}
        batch = _Batch(self.sink.done(delivery))
        lanes = self.plan.lanes_of(messages, delivery, bad)
        try:
            self._wait_for([self._pool.submit(self._run, lane, batch) for lane in lanes])
        finally:
            batch.ended.set()
            self.waiting = False
        return refused + batch.refused

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._cancelled.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.client.close()

    def _wait_for(self, lanes: Iterable[Future[None]]) -> None:
        """Return when all lanes have ended; raises their most serious error."""
        errors: list[BaseException] = []
        pending = set(lanes)
        while pending:
            if self._cancelled.is_set():
                raise Retryable(ENDED)
            done, pending = wait(pending, LOOK_S)
            # A service that keeps accepting requests is not late, however many requests there are.
            self.waiting = time.monotonic() - self._accepted_at < self.timeout_s
            errors += [error for lane in done if (error := lane.exception()) is not None]
        if errors:
            raise max(errors, key=_weight)

    def _run(self, lane: Iterator[Request], batch: _Batch) -> None:
        """Send the requests of a lane, until another lane has failed."""
        try:
            for request in lane:
                if batch.ended.is_set():
                    return
                refused = self._deliver(request, batch)
                batch.refused += [(request.events[at].number, code, reason) for at, code, reason in refused]
        except BaseException:
            batch.ended.set()
            raise

    def _deliver(self, request: Request, batch: _Batch) -> list[Refusal]:
        """Send a request until it is acknowledged; returns its rejected events by their number in it."""
        if request.key not in batch.done:
            if self._cancelled.is_set():
                raise Retryable(ENDED)
            self.permitted()  # a batch may take longer than a lease
            refusal = self._sent(request)
            if refusal is None:
                found = []
            elif len(request.events) == 1 or refusal.whole:
                found = [(at, refusal.code, refusal.reason) for at in range(len(request.events))]
            else:
                first, second = request.halves()
                found = list(self._deliver(first, batch))
                rest, middle = self._deliver(second, batch), len(first.events)
                found += [(middle + at, code, reason) for at, code, reason in rest]
            batch.done[request.key] = found
        return batch.done[request.key]

    def _sent(self, request: Request) -> _Refused | None:
        """Send a request; returns why it was rejected, or None if it was accepted."""
        url, by_event = parted(request.target)
        body = request.content if self.sink.method != "DELETE" else None
        own = {}
        if self.sink.idempotency_key is not None:
            own[self.sink.idempotency_key] = request.key
        if (sign := self.sink.signature) is not None:
            own[sign.header] = signature(sign.format, sign.secret, body or b"", int(time.time()))
        headers = merged(self.headers, by_event, own)
        answer = exchange(self.client, self.sink.method, url, headers, body, self.timeout_s)
        where = shown(url)
        if answer.status in self.by_address:
            return self._lost_address(answer, where)
        judge(answer, where, again=self.sink.retry_statuses)
        self._lost = 0
        self._accepted_at = time.monotonic()
        if answer.status < 300:
            return None
        reason = f"{where} responded with {answer.status}: {answer.text or 'no reason'}"
        return _Refused(f"http_{answer.status}", reason)

    def _lost_address(self, answer: Answer, where: str) -> _Refused:
        """The rejection of a request whose URL, built from its events, is unknown or forbidden."""
        problem = setting(answer, where)
        self._lost += 1
        if self._lost >= IN_A_ROW:
            message = f"{problem.message}; {IN_A_ROW} consecutive requests were rejected because of their URL"
            raise Invalid(problem.model_copy(update={"message": message, "path": "url"}))
        return _Refused(f"http_{answer.status}", problem.message, whole=True)


class _Refused(NamedTuple):
    """The reason why a request was rejected."""

    code: str
    reason: str
    whole: bool = False
    """Whether the reason applies to each event of the request."""


class _Batch:
    """A batch that is being sent."""

    def __init__(self, done: Done) -> None:
        self.done, self.refused = done, list[Refusal]()
        self.ended = threading.Event()


def _content_type(sink: HttpSink) -> dict[str, str]:
    from penstock.connectors.http.sink import TYPES

    return {} if sink.method == "DELETE" else {"Content-Type": TYPES[sink.body]}


def _weight(error: BaseException) -> tuple[int, float]:
    """The severity of an error: first errors that a retry can't fix, then retryable ones, then waits."""
    if isinstance(error, Backpressure):
        return 0, error.retry_after
    return (2 if isinstance(error, Invalid) else 1), 0.0
