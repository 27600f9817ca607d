"""Statements in the binary log: transaction boundaries, and changes to tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

What = Literal[
    "begin", "commit", "rollback", "undone", "emptied", "created", "altered", "written", "other"
]  # fmt: skip
"""`undone`: a transaction was rolled back to a savepoint. `emptied`: all rows of tables were removed."""

_COMMENT = re.compile(r"^(?:\s+|/\*(?!!).*?\*/|--[ \t][^\n]*\n|#[^\n]*\n)+", re.DOTALL)
_NAME = r"(?:`(?:[^`]|``)+`|[^\s`.,;()]+)"
_TABLE = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_TABLES = rf"{_TABLE}(?:\s*,\s*{_TABLE})*"
_TEXTS: list[tuple[What, str]] = [
    ("emptied", rf"TRUNCATE\s+(?:TABLE\s+)?(?P<names>{_TABLE})"),
    ("emptied", rf"DROP\s+TABLES?\s+(?:IF\s+EXISTS\s+)?(?P<names>{_TABLES})"),
    ("emptied", rf"CREATE\s+OR\s+REPLACE\s+TABLE\s+(?P<names>{_TABLE})"),
    ("emptied", rf"DELETE\s+FROM\s+(?P<names>{_TABLE})\s*(?:/\*.*)?$"),
    ("created", rf"CREATE\s+TABLE\s+(?!IF\s)(?P<names>{_TABLE})"),  # IF NOT EXISTS may have done nothing
    ("altered", rf"ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?(?P<names>{_TABLE})"),
    (
        "altered",
        rf"RENAME\s+TABLES?\s+(?:IF\s+EXISTS\s+)?(?P<names>{_TABLE}(?:\s+TO\s+|\s*,\s*|{_TABLE})*)",
    ),
]
_PATTERNS = [(what, re.compile(text, re.IGNORECASE | re.DOTALL)) for what, text in _TEXTS]
_DATABASE = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?(?P<name>{_NAME})", re.IGNORECASE)
_WRITES = re.compile(r"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|WITH)\b", re.IGNORECASE)
_PART = re.compile(_NAME)


@dataclass(frozen=True)
class Statement:
    """The effect of a statement in the binary log."""

    what: What
    tables: tuple[str, ...] = ()
    """The tables in the statement, with their databases."""
    database: str | None = None
    """The database that the statement drops."""


def query_of(body: bytes) -> tuple[str, str]:
    """The database of the session, and the statement, of a QUERY event."""
    at = 13 + int.from_bytes(body[11:13], "little")
    end = at + body[8]
    return body[at:end].decode(), body[end + 1 :].decode("utf-8", "replace")


def statement_of(text: str, schema: str) -> Statement:
    """The effect of a statement in a session with the default database `schema`."""
    text = _COMMENT.sub("", text).strip()
    head = text[:12].upper()
    if head.startswith(("BEGIN", "START TRANSA")):
        return Statement("begin")
    if head.startswith("COMMIT"):
        return Statement("commit")
    if head.startswith("ROLLBACK"):
        return Statement("undone" if " TO " in text.upper() else "rollback")
    if found := _DATABASE.match(text):
        return Statement("emptied", database=_plain(found["name"]))
    for what, pattern in _PATTERNS:
        if found := pattern.match(text):
            return Statement(what, tuple(_names(found["names"], schema)))
    return Statement("written" if _WRITES.match(text) else "other")


def mentions(text: str, table: str) -> bool:
    """Whether a statement may refer to a table."""
    name = re.escape(table.partition(".")[2])
    return re.search(rf"(?<![\w$]){name}(?![\w$])", text, re.IGNORECASE) is not None


def _names(text: str, schema: str) -> list[str]:
    found = []
    for part in re.split(r"\s+TO\s+|\s*,\s*", text, flags=re.IGNORECASE):
        names = [_plain(each) for each in _PART.findall(part)]
        if names:
            found.append(".".join(names if len(names) > 1 else [schema, *names]))
    return found


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
