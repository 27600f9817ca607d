"""Random secrets, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

BYTES = 32
_TOKEN = re.compile(r"([0-9a-f]{8})\.([A-Za-z0-9_-]{20,200})")


def new_secret() -> str:
    """A secret that cannot be guessed, of letters that need no escaping in URLs and headers."""
    return secrets.token_urlsafe(BYTES)


def new_id() -> str:
    """The part of a token that names it, and is no secret."""
    return secrets.token_hex(4)


def digest(secret: str) -> str:
    """What is stored of a secret. A plain hash is enough: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, known: str) -> bool:
    """Whether a secret is the one with that hash, in a time that says nothing about it."""
    return hmac.compare_digest(digest(secret), known)


def derived(secret: str, purpose: str) -> str:
    """Another secret that follows from one, so that it need not be stored."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def join_token(number: str, secret: str) -> str:
    """A token as its owner gets it."""
    return f"{number}.{secret}"


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token; None if the text cannot be one."""
    found = _TOKEN.fullmatch(text)
    return (found[1], found[2]) if found else None
