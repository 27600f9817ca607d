"""Passwords: hashed with Argon2id."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from penstock.errors import Invalid, Problem

SHORTEST, LONGEST = 8, 1024
"""Length limits in characters. The upper limit keeps requests from hashing megabytes."""

AT_ONCE = 2
"""Hashes computed at a time: each takes 64 MB, so a flood of log-ins would fill memory."""

_hasher = PasswordHasher()
_turns = threading.Semaphore(AT_ONCE)


def hashed(password: str) -> str:
    """The hash of a password, for storage; Invalid if the password is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        message = f"a password has {SHORTEST} to {LONGEST} characters"
        raise Invalid(Problem(code="weak_password", message=message, path="password"))
    with _turns:
        return _hasher.hash(password)


def verified(password: str, known: str | None) -> bool:
    """Whether a password matches a hash. Takes equally long if there is no hash."""
    with _turns:
        try:
            right = _hasher.verify(known or _nobody(), password[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return False
    return right and known is not None


@cache
def _nobody() -> str:
    """The hash of a dummy password, for log-ins of users that do not exist."""
    return _hasher.hash("no such user")
