"""What headers of HTTP answers say, and how addresses are shown."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

LONGEST_S = 3600.0
"""Seconds that `Retry-After` may ask for; a date far ahead would stop a flow for good."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, from its header `Retry-After`: a number or a date."""
    text = headers.get("Retry-After", "").strip()
    if text.isdigit():
        return min(float(text), LONGEST_S)
    try:
        wait = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None
    return min(max(0.0, wait), LONGEST_S)


def shown(url: str) -> str:
    """A URL as errors show it: without its path and query, which may be secret."""
    found = urlsplit(url)
    return f"{found.scheme}://{found.netloc}"
