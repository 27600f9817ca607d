"""Tokens with the role `worker`, which let workers join over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.control.access import tokens
from penstock.control.access.roles import WORKER
from penstock.control.registry.store import Registry
from penstock.errors import NotFound, Problem


@dataclass(frozen=True)
class Token:
    """A token as it is listed, without its secret."""

    id: str
    note: str
    created_at: datetime


class Tokens:
    """The tokens of workers of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._tokens = tokens.Tokens(registry)

    def make(self, note: str = "") -> str:
        """Create a token, and return its text. Only the hash is stored."""
        return self._tokens.make(note, WORKER)[1]

    def all(self) -> list[Token]:
        """Every token, oldest first."""
        return [Token(each.id, each.name, each.created_at) for each in self._tokens.all(role=WORKER)]

    def revoke(self, number: str) -> None:
        """Remove a token; requests of its workers are rejected from now on."""
        if number not in {each.id for each in self._tokens.all(role=WORKER)}:
            hint = "`penstock worker tokens` lists them"
            raise NotFound(Problem(code="not_found", message=f"there is no token '{number}'", hint=hint))
        self._tokens.revoke(number)
