"""Names of documents, and the ids derived from them.

A name may contain letters of any script. Its id is ASCII, because directories, topics and URLs use it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from anyascii import anyascii

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _.-]{0,126}[A-Za-z0-9_-])?")
"""The pattern of names in ASCII, and of all ids."""

NAME_PATTERN = r"^[^\x00-/:-@\[-`{-\x7f](?:[^\x00-\x1f!-,/:-@\[-^`{-\x7f]{0,126}[^\x00-,./:-@\[-^`{-\x7f])?$"
"""The pattern of names in any script, for JSON Schema: NAME plus all non-ASCII characters."""

RULE = (
    "a name must have 1 to 128 letters, digits, spaces, '_', '-' or '.', "
    "start with a letter or digit and not end with a space or '.'"
)


@lru_cache(maxsize=4096)
def derive_id(name: str) -> str:
    """The stable id of a name: in ASCII and lower case, spaces become underscores."""
    if not name.isascii():
        name = re.sub(r"[^A-Za-z0-9 _.-]", "", anyascii(name)).lstrip(" _.-").rstrip(" .")
    return re.sub(r"\s", "_", name.strip().lower())


NameFaultCode = Literal["invalid_name", "no_id", "id_too_long"]
NAME_FAULTS = get_args(NameFaultCode)


class Fault(NamedTuple):
    """The reason why a text can't be the name of a document, and how to fix it."""

    code: NameFaultCode
    message: str
    hint: str


def name_fault(name: str) -> Fault | None:
    """The reason why a text can't be the name of a document; None if it can."""
    if name.isascii():
        return None if NAME.fullmatch(name) else _invalid(name)
    allowed = all(c.isascii() or unicodedata.category(c)[0] in "LMN" for c in name)
    if not allowed or not re.fullmatch(NAME_PATTERN, name):
        return _invalid(name)
    made = derive_id(name)
    if not made:
        message = "no id can be derived from this name, because it can't be written in Latin letters"
        return Fault("no_id", message, "add Latin letters or digits; the id is made of them")
    if not NAME.fullmatch(made):
        message = f"the id derived from this name is longer than 128 characters: '{made[:40]}…'"
        return Fault("id_too_long", message, "shorten the name")
    return None


def _invalid(name: str) -> Fault:
    odd = dict.fromkeys(
        c for c in name if not (unicodedata.category(c)[0] in "LMN" or c in " _.-")
    )  # each once, in order
    named = ", ".join(f"'{c}'" if c.isprintable() else f"U+{ord(c):04X}" for c in list(odd)[:5])
    hint = f"remove {named}" if odd else "change its length, its first or its last character"
    return Fault("invalid_name", RULE, hint)
