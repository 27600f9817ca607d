"""The result of decoding a body: the events that fit, and those that do not, with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.streams.events import HEADERS, KEY, META, RAW

SHOWN = 40
"""Characters of a value that a reason shows."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """An event that the stream cannot take, for the dead-letter stream and for its sender.

    `line` counts the lines or events of the body from 1; `value` is the text as it came.
    """

    line: int
    value: bytes
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The good events of a body in their order, and the others."""

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
        """The same, seen from one level further out."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        self.where = step + dot + self.where
        return self

    def of(self, line: int, value: bytes) -> Misfit:
        """The event that has it."""
        return Misfit(line, value, self.code, str(self))


def shown(value: Any) -> str:
    """A value as it is shown in a reason: JSON, shortened."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def raw_batch(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Raw events."""
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], schema=RAW)


def nothing(schema: pa.Schema | None) -> pa.RecordBatch:
    """No event at all."""
    schema = RAW if schema is None else schema
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)


def whole(body: bytes, schema: pa.Schema | None, code: str, reason: str, line: int = 1) -> Decoded:
    """The result for a body that cannot be decoded at all."""
    return Decoded(nothing(schema), [Misfit(line, body, code, reason)])


def with_meta(batch: pa.RecordBatch, keys: pa.Array, headers: pa.Array) -> pa.RecordBatch:
    """The events with their keys and headers; a column without any is left out, as the log wants it."""
    for name, column in ((KEY, keys), (HEADERS, headers)):
        if column.null_count < len(column):
            batch = batch.append_column(META.field(name), column)
    return batch
