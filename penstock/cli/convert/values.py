"""Conversions of values that the tables of several systems use."""

from __future__ import annotations

import re
from typing import Any

from penstock.cli.convert.draft import Note, Unmapped
from penstock.cli.convert.located import Node

UNITS_MS = {
    "ns": 1e-6,
    "us": 1e-3,
    "µs": 1e-3,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}

GROUP = Note(
    "a flow keeps its own position and doesn't start at the offsets of the consumer group",
    "set `position` to the time to start reading from",
)
"""A consumer group of Kafka."""

STORE_LOGIN = (
    "the bucket is opened with the credentials of the worker's environment",
    "set store.access_key and store.secret_key if there are none",
)
"""The message about the credentials of a bucket, and its hint."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def comma_list(node: Node) -> list[str]:
    """Names from a list, or from one comma-separated text."""
    value = node.use()
    entries = value if isinstance(value, list) else [value]
    return [part.strip() for entry in entries for part in str(entry).split(",") if part.strip()]


def number(node: Node) -> int:
    """A whole number, which may be written as text."""
    try:
        return int(str(node.use()).replace("_", ""))
    except ValueError:
        raise Unmapped(f"'{node.value}' is not a whole number and was left out") from None


def boolean(node: Node) -> bool:
    """true or false, which may be written as text."""
    text = str(node.use()).lower()
    if text not in ("true", "false"):
        raise Unmapped(f"'{node.value}' is neither true nor false and was left out")
    return text == "true"


def milliseconds(node: Node) -> int:
    """A duration as Go writes it, such as `1m30s`, or as a number of milliseconds."""
    text = str(node.use()).strip().strip('"')
    if text.isdigit():
        return int(text)
    parts = re.findall(r"([\d.]+)(ns|us|µs|ms|s|m|h|d)", text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise Unmapped(f"'{text}' is not a supported duration and was left out")
    return round(sum(float(amount) * UNITS_MS[unit] for amount, unit in parts))


def seconds(node: Node) -> int:
    """A number of seconds, as milliseconds."""
    return round(float(node.use()) * 1000)


def as_text(node: Node) -> str:
    """Any scalar as text."""
    return node.text()


def text_map(node: Node) -> dict[str, str]:
    """A mapping of texts."""
    return {str(name): _plain(value) for name, value in dict(node.use()).items()}


def mechanism(node: Node) -> str:
    """A SASL mechanism that our Kafka connector supports."""
    name = node.text().upper().replace("_", "-")
    if name not in MECHANISMS:
        raise Unmapped(
            f"the login mechanism '{node.value}' has no equivalent", f"one of: {', '.join(MECHANISMS)}"
        )
    return name


def snake(text: str) -> str:
    """A text as part of a name."""
    return re.sub(r"\W+", "_", text).strip("_").lower()


def document_name(text: str) -> str:
    """A text as the name of a document."""
    return (re.sub(r"[^A-Za-z0-9 _.-]+", "-", text).strip(" .-_")[:120] or "converted").rstrip(" .-")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def database_url(driver: str, dsn: str) -> str:
    """The URL of a database from a driver and a data source name of Go."""
    found = re.fullmatch(r"([^@]*)@tcp\(([^)]*)\)/(.*)", dsn)
    if driver == "mysql" and found is not None:
        return f"mysql://{found[1]}@{found[2]}/{found[3]}"
    if driver == "sqlite" and "://" not in dsn:
        return "sqlite:///" + dsn.removeprefix("file:").split("?")[0]
    return re.sub(r"^postgres://", "postgresql://", dsn)
