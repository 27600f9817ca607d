"""Headers of HTTP responses, and the display of URLs."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

LONGEST_S = 3600.0
"""Maximum seconds of `Retry-After`: a date far in the future would stop a flow forever."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, from the header `Retry-After`, which is a number or a date; None if absent."""
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return min(float(text), LONGEST_S)
    try:
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None
    return min(max(0.0, wait), LONGEST_S)


def shown(url: str) -> str:
    """A URL for display in errors: without its path and query, which may be secret."""
    found = urlsplit(url)
    return f"{found.scheme}://{found.netloc}"
