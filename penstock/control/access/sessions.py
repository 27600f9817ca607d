"""Sessions of browsers. The secret is in a cookie; the registry has its hash."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, or_, select, update

from penstock.control.access.callers import Caller
from penstock.control.access.secrets import derived, digest, new_secret
from penstock.control.access.users import User
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import sessions, users
from penstock.settings.guard import AuthSettings

SEEN_S = 60
"""Minimum seconds between updates of the time that a session was last used."""


class Sessions:
    """The sessions of a registry. A session ends when it is too old, idle or closed, or its user removed."""

    def __init__(self, registry: Registry, settings: AuthSettings) -> None:
        self._registry = registry
        self._longest = timedelta(hours=settings.session_hours)
        self._idle = timedelta(minutes=settings.idle_minutes)

    def open(self, user: User) -> str:
        """Open a session for a user who has just logged in; returns its secret. Removes expired sessions."""
        secret, now = new_secret(), datetime.now(UTC)
        values = {"user": user.name, "via": user.via, "created_at": now, "seen_at": now}
        ended = or_(sessions.c.created_at < now - self._longest, sessions.c.seen_at < now - self._idle)
        with self._registry.begin() as conn:
            conn.execute(delete(sessions).where(ended))
            conn.execute(sessions.insert().values(hash=digest(secret), **values))
            conn.execute(update(users).where(users.c.name == user.name).values(last_login_at=now))
        return secret

    def caller(self, secret: str, *, used: bool = True) -> Caller | None:
        """The user of a session, if the session has not ended. `used` keeps it from becoming idle."""
        key, now = digest(secret), datetime.now(UTC)
        columns = (sessions, users.c.role, users.c.disabled)
        found = select(*columns).join(users, users.c.name == sessions.c.user).where(sessions.c.hash == key)
        with self._registry.engine.connect() as conn:
            row = conn.execute(found).first()
        if row is None or row.disabled:
            return None
        if now - row.created_at > self._longest or now - row.seen_at > self._idle:
            return None
        if used and (now - row.seen_at).total_seconds() >= SEEN_S:
            with self._registry.begin() as conn:
                conn.execute(update(sessions).where(sessions.c.hash == key).values(seen_at=now))
        return Caller(row.user, row.role, row.via, session=key, csrf=derived(secret, "csrf"))

    def close(self, key: str) -> None:
        """End the session with that hash."""
        with self._registry.begin() as conn:
            conn.execute(delete(sessions).where(sessions.c.hash == key))
