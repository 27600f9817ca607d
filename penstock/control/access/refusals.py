"""Refused requests in the audit trail, so few of them that a flood neither fills it nor keeps it busy.

The first `EACH` requests of a kind in a minute are written at once. Further ones are counted, and written as
one entry at its end. Past `MOST` kinds in a minute, all others are one entry together. The registry keeps the
newest `KEPT` entries.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError

from penstock.control.access.audit import Audit

log = structlog.get_logger()

REFUSED = frozenset({401, 403, 421, 429})
"""The statuses of requests that were refused for who sent them, from where, or how often."""

WINDOW_S = 60.0
EACH, MOST = 5, 100
KEPT = 10_000

UNKNOWN = "request"
"""The action of a request that has no name in the audit trail, such as one that reads."""


@dataclass(frozen=True)
class Refusal:
    """A refused request: who sent it from where, and what for."""

    action: str
    target: str
    user: str | None
    via: str | None
    address: str | None
    status: int


class Refusals:
    """Writes refused requests to an audit trail."""

    def __init__(self, audit: Audit, window_s: float = WINDOW_S) -> None:
        self._audit, self._window_s = audit, window_s
        self._mutex = threading.Lock()
        self._begun: float | None = None
        self._times: dict[Refusal, int] = {}
        self._others: dict[int, int] = {}
        """Requests beyond `MOST` kinds, by status."""
        self._written = 0

    def is_new(self, refusal: Refusal) -> bool:
        """Count a refusal; true if it is to be written now."""
        with self._mutex:
            if self._begun is None:
                self._begun = time.monotonic()
                timer = threading.Timer(self._window_s, self.flush)
                timer.daemon = True
                timer.start()
            if refusal not in self._times and len(self._times) >= MOST:
                self._others[refusal.status] = self._others.get(refusal.status, 0) + 1
                return False
            self._times[refusal] = times = self._times.get(refusal, 0) + 1
            return times <= EACH

    def add(self, refusal: Refusal) -> None:
        """Count a refusal, and write it if it is one of the first of its kind."""
        if self.is_new(refusal):
            self.write(refusal)

    def write(self, refusal: Refusal, times: int = 1) -> None:
        """Write the entry of a refusal; now and then remove the oldest ones beyond `KEPT`."""
        after = {"requests": times} if times > 1 else None
        try:
            self._audit.record(
                refusal.action,
                refusal.target,
                user=refusal.user,
                via=refusal.via,
                address=refusal.address,
                status=refusal.status,
                after=after,
            )
            if self._written % MOST == 0:  # it may have to look at all entries
                self._audit.keep_newest(REFUSED, KEPT)
            self._written += 1
        except SQLAlchemyError as error:  # the request is refused in any case
            log.error("the audit trail cannot be written", action=refusal.action, error=str(error))

    def flush(self) -> None:
        """Write the numbers of further requests, and begin anew."""
        with self._mutex:
            found, others = self._times, self._others
            self._times, self._others, self._begun = {}, {}, None
        for refusal, times in found.items():
            if times > EACH:
                self.write(refusal, times - EACH)
        for status, times in others.items():
            self.write(Refusal(UNKNOWN, "others", None, None, None, status), times)
