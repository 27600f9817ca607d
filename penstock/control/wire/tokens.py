"""Tokens that let workers join over HTTP. The registry keeps a hash of each."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, insert, select

from penstock.control.registry.store import Registry
from penstock.control.registry.tables import worker_tokens
from penstock.errors import NotFound, Problem, Unauthorised


@dataclass(frozen=True)
class Token:
    """A token as it is listed, without its secret."""

    id: str
    note: str
    created_at: datetime


class Tokens:
    """The tokens of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def make(self, note: str = "") -> str:
        """A new token. Only its hash is stored."""
        number, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        values = {"id": number, "hash": _hash(secret), "note": note, "created_at": datetime.now(UTC)}
        with self._registry.begin() as conn:
            conn.execute(insert(worker_tokens).values(**values))
        return f"{number}.{secret}"

    def all(self) -> list[Token]:
        """Every token, oldest first."""
        columns = (worker_tokens.c.id, worker_tokens.c.note, worker_tokens.c.created_at)
        with self._registry.engine.connect() as conn:
            return [
                Token(*row) for row in conn.execute(select(*columns).order_by(worker_tokens.c.created_at))
            ]

    def revoke(self, number: str) -> None:
        """Remove a token; its workers are refused from now on."""
        with self._registry.begin() as conn:
            found = conn.execute(delete(worker_tokens).where(worker_tokens.c.id == number)).rowcount
        if not found:
            hint = "`penstock worker tokens` lists them"
            raise NotFound(Problem(code="not_found", message=f"there is no token '{number}'", hint=hint))

    def require(self, given: str) -> None:
        """Unauthorised unless a token is valid."""
        number, _, secret = given.partition(".")
        with self._registry.engine.connect() as conn:
            known = conn.scalar(select(worker_tokens.c.hash).where(worker_tokens.c.id == number))
        if not hmac.compare_digest(_hash(secret), known or ""):
            raise Unauthorised(
                Problem(
                    code="unauthorised",
                    message="the token of this worker is invalid or was revoked",
                    hint="create one on the server with `penstock worker token`",
                )
            )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
