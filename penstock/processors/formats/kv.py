"""Pairs of names and values, such as `level=info msg="it is done" ms=12`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from penstock.processors.formats.text import Split
from penstock.streams.decode.results import Mismatch, shown

QUOTED = r'"(?:[^"\\]|\\.)*"'
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def kv_splitter(names: Sequence[str], between: str, after_key: str) -> Split:
    """A function that splits text into pairs, separated by `between`, with `after_key` after a name.

    Names that are not columns are ignored, and of two pairs with the same name the later one is used.
    """
    # A blank as separator matches any number of blanks, as is common in logs.
    gap = r"\s+" if between.isspace() else rf"\s*{re.escape(between)}\s*"
    key, stop = re.escape(after_key), r"\s" if between.isspace() else re.escape(between)
    pair = re.compile(rf"((?:(?!{stop}|{key}).)+){key}({QUOTED}|(?:(?!{stop}).)*)", re.DOTALL)
    separator = re.compile(gap)

    def split(text: str) -> Sequence[str | None]:
        text = text.strip()
        values: dict[str, str] = {}
        at = 0
        while at < len(text):
            found = pair.match(text, at)
            if found is None:
                problem = f"expected a name followed by '{after_key}' at character {at + 1}"
                raise Mismatch("malformed_kv", f"{problem}: {shown(text[at:])}")
            values[found[1].strip()] = _unquoted(found[2])
            at = found.end()
            if at < len(text):
                gone = separator.match(text, at)
                if gone is None:
                    raise Mismatch(
                        "malformed_kv", f"{shown(text[at:])} follows a value at character {at + 1}"
                    )
                at = gone.end()
        return [values.get(name) for name in names]

    return split


def kv_line(pairs: Iterable[tuple[str, str | None]], between: str, after_key: str) -> str:
    """Pairs as text; pairs without a value are omitted."""
    return between.join(
        f"{name}{after_key}{_quoted(value, between)}" for name, value in pairs if value is not None
    )


def _unquoted(value: str) -> str:
    if len(value) < 2 or not (value.startswith('"') and value.endswith('"')):
        return value
    return ESCAPED.sub(lambda found: ESCAPES.get(found[1], found[1]), value[1:-1])


def _quoted(value: str, between: str) -> str:
    plain = value and value == value.strip() and not any(c in value for c in (between, '"', "\n", "\r"))
    if plain and not (between.isspace() and any(c.isspace() for c in value)):
        return value
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{text}"'
