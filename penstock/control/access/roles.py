"""Roles, and which of them includes which."""

from __future__ import annotations

from typing import Literal

Role = Literal["viewer", "operator", "editor", "admin"]
TokenRole = Literal["viewer", "operator", "editor", "admin", "ingest", "worker"]

MEANINGS: dict[Role, str] = {
    "viewer": "read everything except users, the tokens of others, the audit trail and the settings",
    "operator": "start, stop, pause and resume; replays, dead letters, catch-up and the positions of readers;"
    " send events; test runs and queries",
    "editor": "create, change and delete documents; bundles, moves of streams and connection tests",
    "admin": "users, the tokens of others, the audit trail, the settings and workers",
}
"""What each role adds to the one before it, in that order."""

INGEST, WORKER, PUBLIC = "ingest", "worker", "public"
"""For tokens that do one thing: send events to one source, and run flows. `public` needs no role."""

_RANKS: dict[str, int] = {role: rank for rank, role in enumerate(MEANINGS, start=1)}


def rank(role: str) -> int:
    """How much a role includes: 0 for one that is not for people."""
    return _RANKS.get(role, 0)


def permits(have: str, need: str) -> bool:
    """Whether somebody with the role `have` may do what needs the role `need`."""
    if need in (PUBLIC, have):
        return True
    if need == INGEST:
        return rank(have) >= rank("operator")
    return 0 < rank(need) <= rank(have)


def may_grant(have: str, wanted: str) -> bool:
    """Whether somebody with the role `have` may make a token with the role `wanted`."""
    if wanted == WORKER:
        return have == "admin"
    return permits(have, wanted) and rank(have) > 0


def lesser(one: str, other: str) -> str:
    """The role of two that includes less."""
    return min(one, other, key=rank)
