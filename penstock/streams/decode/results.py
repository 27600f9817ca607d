"""The result of decoding a body: events that fit the schema, and misfits with their reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.streams.events import HEADERS, KEY, META, RAW

SHOWN = 40
"""The number of characters of a value that a reason shows."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """An event that does not fit the stream; it is stored as a dead letter and reported to the client.

    `line` counts the lines or events of the body from 1; `value` is the original text.
    """

    line: int
    value: bytes
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The valid events of a body, in order, and the misfits."""

    batch: pa.RecordBatch
    misfits: list[Misfit] = field(default_factory=list)


class Mismatch(Exception):
    """A value that does not fit. `where` grows from the inside out: `[2]`, then `tags[2]`."""

    def __init__(self, code: str, problem: str, where: str = "") -> None:
        super().__init__(code, problem)
        self.code, self.problem, self.where = code, problem, where

    def __str__(self) -> str:
        return f"column '{self.where}' {self.problem}" if self.where else self.problem

    def below(self, step: str) -> Mismatch:
        """Prefix the path with `step`, the name of the enclosing level."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        self.where = step + dot + self.where
        return self

    def of(self, line: int, value: bytes) -> Misfit:
        """The misfit with this mismatch."""
        return Misfit(line, value, self.code, str(self))


def shown(value: Any) -> str:
    """A value for display in a reason: JSON, truncated."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def raw_batch(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """A record batch of raw events."""
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], schema=RAW)


def nothing(schema: pa.Schema | None) -> pa.RecordBatch:
    """An empty record batch."""
    schema = RAW if schema is None else schema
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)


def whole(body: bytes, schema: pa.Schema | None, code: str, reason: str, line: int = 1) -> Decoded:
    """The result for a body that cannot be decoded at all."""
    return Decoded(nothing(schema), [Misfit(line, body, code, reason)])


def with_meta(batch: pa.RecordBatch, keys: pa.Array, headers: pa.Array) -> pa.RecordBatch:
    """The events with their keys and headers; a column of nulls is omitted, as the log expects."""
    for name, column in ((KEY, keys), (HEADERS, headers)):
        if column.null_count < len(column):
            batch = batch.append_column(META.field(name), column)
    return batch
