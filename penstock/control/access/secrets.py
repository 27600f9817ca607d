"""Random secrets; only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

BYTES = 32
_TOKEN = re.compile(r"([0-9a-f]{8})\.([A-Za-z0-9_-]{20,200})")


def new_secret() -> str:
    """A random secret, of characters that need no escaping in URLs and headers."""
    return secrets.token_urlsafe(BYTES)


def new_id() -> str:
    """A new id of a token: the part that is not secret."""
    return secrets.token_hex(4)


def digest(secret: str) -> str:
    """The hash of a secret, for storage. A plain hash is enough: random secrets can't be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, known: str) -> bool:
    """Whether a secret matches a hash, compared in constant time."""
    return hmac.compare_digest(digest(secret), known)


def derived(secret: str, purpose: str) -> str:
    """A second secret that is derived from a secret, so that it need not be stored."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def join_token(number: str, secret: str) -> str:
    """The text of a token, as given to its owner."""
    return f"{number}.{secret}"


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token; None if the text is not a token."""
    found = _TOKEN.fullmatch(text)
    return (found[1], found[2]) if found else None
