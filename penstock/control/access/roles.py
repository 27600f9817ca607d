"""Roles and their hierarchy."""

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
"""The permissions that each role adds to the role before it."""

INGEST, WORKER, PUBLIC = "ingest", "worker", "public"
"""Roles of single-purpose tokens: sending events to one source, and running flows. `public` needs no role."""

_RANKS: dict[str, int] = {role: rank for rank, role in enumerate(MEANINGS, start=1)}


def rank(role: str) -> int:
    """The rank of a role in the hierarchy; 0 for roles that only tokens have."""
    return _RANKS.get(role, 0)


def permits(have: str, need: str) -> bool:
    """Whether the role `have` permits actions that need the role `need`."""
    if need in (PUBLIC, have):
        return True
    if need == INGEST:
        return rank(have) >= rank("operator")
    return 0 < rank(need) <= rank(have)


def may_grant(have: str, wanted: str) -> bool:
    """Whether a caller with the role `have` may create a token with the role `wanted`."""
    if wanted == WORKER:
        return have == "admin"
    return permits(have, wanted) and rank(have) > 0


def lesser(one: str, other: str) -> str:
    """The role with fewer permissions of two."""
    return min(one, other, key=rank)
