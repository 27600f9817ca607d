"""Names of documents, and the ids derived from them.

A name may have letters of any script. Its id is ASCII, because directories, topics and URLs use it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _.-]{0,126}[A-Za-z0-9_-])?")
"""Names in ASCII, and all ids."""

NAME_PATTERN = r"^[^\x00-/:-@\[-`{-\x7f](?:[^\x00-\x1f!-,/:-@\[-^`{-\x7f]{0,126}[^\x00-,./:-@\[-^`{-\x7f])?$"
"""Names in any script, for JSON Schema: NAME with all characters that are not ASCII."""

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


def name_fault(name: str) -> str | None:
    """Why a text can't be the name of a document; None if it can."""
    if name.isascii():
        return None if NAME.fullmatch(name) else RULE
    allowed = all(c.isascii() or unicodedata.category(c)[0] in "LMN" for c in name)
    if not allowed or not re.fullmatch(NAME_PATTERN, name):
        return RULE
    made = derive_id(name)
    if not made:
        return "no id can be derived from this name: add Latin letters or digits"
    if not NAME.fullmatch(made):
        return f"the id derived from this name is longer than 128 characters: '{made[:40]}…'"
    return None
