"""Numbers with their nouns."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """A number and its noun in singular or plural: `1 event`, `1,234 events`, `2 batches`."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{number:,} {noun}{ending}"
