"""Limits on log-ins: after too many failures, further attempts have to wait."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from cachetools import TTLCache

from penstock.errors import PenstockError, Problem

PER_USER, PER_ADDRESS = 5, 20
"""Failed log-ins after which the next one has to wait. Several people can share an address."""

FIRST_WAIT_S, LONGEST_WAIT_S = 30.0, 900.0
"""The wait after the first failure beyond the limit; it doubles with each further failure."""

REMEMBERED = 50_000
"""Maximum number of users and addresses with failures: a flood of names must not fill memory."""


class TooManyAttempts(PenstockError):
    """A log-in that has to wait because earlier ones failed."""

    status = 429

    def __init__(self, seconds: float) -> None:
        super().__init__(
            Problem(
                code="too_many_attempts",
                message=f"too many log-ins have failed; try again in {max(1, round(seconds))} s",
            )
        )
        self.retry_after = seconds


@dataclass
class _Failures:
    count: int = 0
    until: float = 0.0


class Attempts:
    """The failed log-ins of the last 15 minutes, in the memory of this process."""

    def __init__(self) -> None:
        self._known: TTLCache[tuple[str, str], _Failures] = TTLCache(REMEMBERED, LONGEST_WAIT_S)
        self._mutex = threading.Lock()

    def begin(self, name: str, address: str) -> None:
        """Count a log-in as failed until `succeeded`; TooManyAttempts if it has to wait.

        Log-ins are counted before the password is checked, so that every concurrent log-in counts.
        """
        now = time.monotonic()
        keys = (("user", name), PER_USER), (("address", address), PER_ADDRESS)
        with self._mutex:
            found = [(key, self._known.get(key) or _Failures(), free) for key, free in keys]
            wait = max(failures.until - now for _, failures, _ in found)
            if wait > 0:
                raise TooManyAttempts(wait)
            for key, failures, free in found:
                failures.count += 1
                if failures.count >= free:
                    wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(failures.count - free, 10))
                    failures.until = now + wait
                self._known[key] = failures  # renews the TTL: evicted 15 minutes after the last failure

    def succeeded(self, name: str, address: str) -> None:
        """Clear the failures of a user, and don't count the last log-in of an address."""
        with self._mutex:
            self._known.pop(("user", name), None)
            if failures := self._known.get(("address", address)):
                failures.count, failures.until = max(0, failures.count - 1), 0.0
