"""Names of tables, slots and publications."""

from __future__ import annotations

import hashlib
import re

LONGEST = 63
"""Maximum length of a PostgreSQL name in characters."""


def full_name(table: str) -> str:
    """The name of a table with its schema, `public` if none is given."""
    return table if "." in table else f"public.{table}"


def is_pattern(table: str) -> bool:
    """Whether a name is a pattern that may match any number of tables."""
    return any(mark in table for mark in "*?[")


def default_name(flow: str) -> str:
    """The name of a flow's slot and publication: lowercase letters, digits and `_`."""
    name = "penstock_" + re.sub(r"[^a-z0-9_]", "_", flow.lower())
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 13]}_{hashlib.sha256(flow.encode()).hexdigest()[:12]}"
