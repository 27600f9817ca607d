"""Denied requests in the audit trail, limited so that a flood neither fills nor overloads the audit trail.

The first `EACH` requests of a kind per minute are written at once. Further requests are counted, and written
as one entry at the end of the minute. Beyond `MOST` kinds per minute, all other requests are written as one
entry per status. The registry retains the newest `KEPT` entries.
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
"""The statuses of requests that were denied because of their caller, origin or rate."""

WINDOW_S = 60.0
EACH, MOST = 5, 100
KEPT = 10_000

UNKNOWN = "request"
"""The action of a request without a name in the audit trail, such as a read request."""


@dataclass(frozen=True)
class Refusal:
    """A denied request: its caller, address, action and target."""

    action: str
    target: str
    user: str | None
    via: str | None
    address: str | None
    status: int


class Refusals:
    """Writes denied requests to an audit trail."""

    def __init__(self, audit: Audit, window_s: float = WINDOW_S) -> None:
        self._audit, self._window_s = audit, window_s
        self._mutex = threading.Lock()
        self._begun: float | None = None
        self._times: dict[Refusal, int] = {}
        self._others: dict[int, int] = {}
        """Requests beyond `MOST` kinds, by status."""
        self._written = 0

    def is_new(self, refusal: Refusal) -> bool:
        """Count a denied request; true if it is to be written now."""
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
        """Count a denied request, and write it if it is one of the first of its kind."""
        if self.is_new(refusal):
            self.write(refusal)

    def write(self, refusal: Refusal, times: int = 1) -> None:
        """Write an entry for a denied request; every `MOST` entries, remove the oldest beyond `KEPT`."""
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
            if self._written % MOST == 0:  # it may have to scan all entries
                self._audit.keep_newest(REFUSED, KEPT)
            self._written += 1
        except SQLAlchemyError as error:  # the request is denied in any case
            log.error("the audit trail cannot be written", action=refusal.action, error=str(error))

    def flush(self) -> None:
        """Write the counts of further requests, and start a new window."""
        with self._mutex:
            found, others = self._times, self._others
            self._times, self._others, self._begun = {}, {}, None
        for refusal, times in found.items():
            if times > EACH:
                self.write(refusal, times - EACH)
        for status, times in others.items():
            self.write(Refusal(UNKNOWN, "others", None, None, None, status), times)
