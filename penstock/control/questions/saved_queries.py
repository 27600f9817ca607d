"""Saved queries: SQL under a name, shared by all users who can query streams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, select, update

from penstock.control.registry.store import Registry
from penstock.control.registry.tables import saved_queries
from penstock.errors import Conflict, NotFound, Problem

MOST = 1000
"""Maximum saved queries of an installation, so that a script can't fill the registry."""


@dataclass(frozen=True)
class SavedQuery:
    """A query under a name."""

    name: str
    sql: str
    user: str | None
    """The user who last saved the query; None if there was no user."""
    updated_at: datetime


class SavedQueries:
    """The saved queries of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def all(self) -> list[SavedQuery]:
        """Every saved query, by name."""
        with self._registry.engine.connect() as conn:
            found = conn.execute(select(saved_queries).order_by(saved_queries.c.name))
            return [SavedQuery(*row) for row in found]

    def save(self, name: str, sql: str, user: str | None) -> SavedQuery:
        """Save a query; replaces an existing query of the same name."""
        query = SavedQuery(name, sql, user, datetime.now(UTC))
        with self._registry.begin() as conn:
            changed = conn.execute(
                update(saved_queries).where(saved_queries.c.name == name).values(**vars(query))
            )
            if changed.rowcount == 0:
                if (conn.scalar(select(func.count()).select_from(saved_queries)) or 0) >= MOST:
                    message = f"there are {MOST:,} saved queries, which is the limit"
                    hint = "delete a query that is no longer needed"
                    raise Conflict(Problem(code="too_many_queries", message=message, hint=hint))
                conn.execute(insert(saved_queries).values(**vars(query)))
        return query

    def delete(self, name: str) -> None:
        """Delete a saved query; NotFound if there is none with this name."""
        with self._registry.begin() as conn:
            gone = conn.execute(delete(saved_queries).where(saved_queries.c.name == name)).rowcount
        if gone == 0:
            raise NotFound(Problem(code="not_found", message=f"there is no saved query '{name}'"))
