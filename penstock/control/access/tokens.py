"""Tokens for programs: with a role, an expiry time, and revocable. The registry stores a hash of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, insert, select, update

from penstock.control.access.callers import Caller
from penstock.control.access.roles import INGEST, lesser, permits, rank
from penstock.control.access.secrets import digest, join_token, matches, new_id, new_secret, split_token
from penstock.control.access.users import LOCAL
from penstock.control.registry.store import Registry
from penstock.control.registry.tables import tokens, users
from penstock.errors import Invalid, NotFound, Problem

USED_S = 60
"""Minimum seconds between updates of the time that a token was last used."""

_COLUMNS = [column for column in tokens.c if column is not tokens.c.hash]


@dataclass(frozen=True)
class Token:
    """A token as it is listed, without its secret."""

    id: str
    name: str
    role: str
    source: str | None
    user: str
    """The user who created the token; `local`: the command line on the server, or before there were users."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class Tokens:
    """The tokens of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def make(
        self,
        name: str,
        role: str,
        *,
        user: str | None = None,
        source: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[Token, str]:
        """Create a token; returns it with its text, stored only as a hash. `ingest` needs a source."""
        if (role == INGEST) != (source is not None):
            message = "a token has a source if, and only if, its role is 'ingest'"
            raise Invalid(Problem(code="invalid_token", message=message, path="source"))
        number, secret, now = new_id(), new_secret(), datetime.now(UTC)
        values = {"name": name, "role": role, "source": source, "user": user, "expires_at": expires_at}
        with self._registry.begin() as conn:
            conn.execute(insert(tokens).values(id=number, hash=digest(secret), created_at=now, **values))
        made = Token(number, name, role, source, user or LOCAL, now, expires_at, None)
        return made, join_token(number, secret)

    def all(self, *, user: str | None = None, role: str | None = None) -> list[Token]:
        """Every token, or those of a user or a role, oldest first."""
        chosen: list[ColumnElement[bool]] = []
        if user is not None:
            chosen.append(tokens.c.user == user)
        if role is not None:
            chosen.append(tokens.c.role == role)
        found = select(*_COLUMNS).where(*chosen).order_by(tokens.c.created_at, tokens.c.id)
        with self._registry.engine.connect() as conn:
            return [_token(row) for row in conn.execute(found)]

    def get(self, number: str) -> Token:
        """A token; NotFound if there is none with that id."""
        with self._registry.engine.connect() as conn:
            row = conn.execute(select(*_COLUMNS).where(tokens.c.id == number)).first()
        if row is None:
            raise _unknown(number)
        return _token(row)

    def revoke(self, number: str) -> None:
        """Remove a token."""
        with self._registry.begin() as conn:
            if not conn.execute(delete(tokens).where(tokens.c.id == number)).rowcount:
                raise _unknown(number)

    def caller(self, text: str) -> Caller | None:
        """The owner of a token, with at most the user's current role; None if the token is not valid."""
        parts = split_token(text)
        if parts is None:
            return None
        number, secret = parts
        columns = (tokens, users.c.role.label("user_role"), users.c.disabled)
        joined = tokens.outerjoin(users, users.c.name == tokens.c.user)
        with self._registry.engine.connect() as conn:
            row = conn.execute(select(*columns).select_from(joined).where(tokens.c.id == number)).first()
        if not matches(secret, "" if row is None else row.hash) or row is None:
            return None
        now = datetime.now(UTC)
        role = _role(row)
        if role is None or (row.expires_at is not None and row.expires_at <= now):
            return None
        if row.last_used_at is None or (now - row.last_used_at).total_seconds() >= USED_S:
            with self._registry.begin() as conn:
                conn.execute(update(tokens).where(tokens.c.id == number).values(last_used_at=now))
        return Caller(
            row.user or LOCAL, role, "token", source=row.source, token=number, expires_at=row.expires_at
        )


def _role(row: Row[Any]) -> str | None:
    """The effective role of a token: its user may have lost the role, or be disabled."""
    if row.user is None:
        return str(row.role)
    if row.disabled:
        return None
    if rank(row.role):
        return lesser(row.role, row.user_role)
    needed = "operator" if row.role == INGEST else "admin"
    return str(row.role) if permits(row.user_role, needed) else None


def _token(row: Row[Any]) -> Token:
    values = {**row._mapping, "user": row.user or LOCAL}
    return Token(**values)


def _unknown(number: str) -> NotFound:
    return NotFound(Problem(code="not_found", message=f"there is no token '{number}'"))
