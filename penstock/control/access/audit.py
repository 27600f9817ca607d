"""The audit trail: changes with their user, address, and the state before and after."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select

from penstock.control.monitor.installation import masked
from penstock.control.registry.content import storable
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import audit

PRUNE_S = 3600.0
"""Interval between removals of entries older than `audit.retention_days`, in seconds."""

LONGEST = 200
"""Maximum characters of a name from a request, such as the name of a failed log-in."""


@dataclass(frozen=True)
class Entry:
    """An action of a caller, performed or denied."""

    id: int
    at: datetime
    user: str | None
    via: str | None
    address: str | None
    action: str
    target: str
    status: int
    """The HTTP status of the response; 200 for the command line."""
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True)
class Action:
    """An action on a target, with the state of the target before and after it."""

    name: str
    target: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


class Audit:
    """The audit trail of a registry. Secrets in it are masked."""

    def __init__(self, registry: Registry, retention_days: int) -> None:
        self._registry = registry
        self._kept = timedelta(days=retention_days)
        self._pruned = -PRUNE_S
        self._mutex = threading.Lock()

    def record(
        self,
        action: str,
        target: str,
        *,
        user: str | None,
        via: str | None,
        address: str | None = None,
        status: int = 200,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Add an entry."""
        done = [Action(action, target, before, after)]
        self.record_all(done, user=user, via=via, address=address, status=status)

    def record_all(
        self, done: Sequence[Action], *, user: str | None, via: str | None, address: str | None, status: int
    ) -> None:
        """Add an entry for each action of one request, in one transaction."""
        request = {
            "at": datetime.now(UTC),
            "user": None if user is None else storable(user[:LONGEST]),
            "via": via,
            "address": address,
            "status": status,
        }
        rows = [
            {
                **request,
                "action": action.name,
                "target": storable(action.target[:LONGEST]),
                "before": _clean(action.before),
                "after": _clean(action.after),
            }
            for action in done
        ]
        with self._registry.begin() as conn:
            conn.execute(insert(audit), rows)
            if self._is_due():
                conn.execute(delete(audit).where(audit.c.at < datetime.now(UTC) - self._kept))

    def keep_newest(self, statuses: Collection[int], count: int) -> None:
        """Remove the oldest entries with these statuses, so that at most `count` remain."""
        found = audit.c.status.in_(statuses)
        last = select(audit.c.id).where(found).order_by(audit.c.id.desc()).offset(count).limit(1)
        with self._registry.begin() as conn:
            conn.execute(delete(audit).where(found, audit.c.id <= last.scalar_subquery()))

    def entries(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        target: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Entry]:
        """The matching entries, newest first; `before` is the id of the last entry of the previous page."""
        found = select(audit).order_by(audit.c.id.desc()).limit(limit)
        for column, value in ((audit.c.user, user), (audit.c.action, action), (audit.c.target, target)):
            if value is not None:
                found = found.where(column == storable(value))
        if before is not None:
            found = found.where(audit.c.id < before)
        with self._registry.engine.connect() as conn:
            return [Entry(**row._mapping) for row in conn.execute(found)]

    def _is_due(self) -> bool:
        with self._mutex:
            if time.monotonic() - self._pruned < PRUNE_S:
                return False
            self._pruned = time.monotonic()
            return True


def _clean(value: dict[str, Any] | None) -> dict[str, Any] | None:
    cleaned: dict[str, Any] | None = masked("", value)
    return cleaned
