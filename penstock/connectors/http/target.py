"""The target of an event: its URL, and the headers that depend on the event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.connectors.messages.template import text_of

if TYPE_CHECKING:
    from pyspark.sql import Column

VALID = r"^(?![^\n?]*/\.{1,2}(?:[/?#\n]|$))https?://[^/?#\s]+"
"""Valid URLs. With `.` or `..` as a path segment, an event could redirect its request to another path."""

_CONTROL = r"[\x00-\x1F\x7F]+"


def target_of(url: str, headers: Mapping[str, str]) -> Column:
    """The URL with its values percent-encoded, and a line `name: value` for each header.

    A header with a NULL column is omitted; a URL with a NULL column is NULL.
    """
    from pyspark.sql import functions as f

    parts = [text_of(url, _encoded)]
    for name, template in headers.items():
        value = f.trim(f.regexp_replace(text_of(template), _CONTROL, " "))
        parts.append(f.coalesce(f.concat(f.lit(f"\n{name}: "), value), f.lit("")))
    return f.concat(*parts)


def parted(target: str) -> tuple[str, dict[str, str]]:
    """The URL and the headers of a target made by `target_of`."""
    url, *lines = target.split("\n")
    return url, {name: value for name, _, value in (line.partition(": ") for line in lines)}


def _encoded(value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.replace(f.url_encode(value), f.lit("+"), f.lit("%20"))
