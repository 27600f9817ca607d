"""The number of dead letters by step and code, counted incrementally."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, PlainSerializer

from penstock.engine.letters.reader import header
from penstock.engine.letters.writer import FORM
from penstock.streams.events import conform
from penstock.streams.log import Log

BLOCK = 10_000
"""Letters per block: when retention removes the oldest letters, only one block is counted again."""

COUNT_S = 2.0
"""Seconds after which counting stops; the next call continues."""

Kind = tuple[str, str]
"""The step that failed, and the code of the failure."""


@dataclass
class _Block:
    first: int
    next: int
    counts: Counter[Kind]


def _pairs(by_kind: Mapping[Kind, int]) -> list[tuple[Kind, int]]:
    """Counts for transfer between processes: a JSON key cannot be a pair."""
    return list(by_kind.items())


def _unpaired(given: Any) -> Any:
    return {tuple(kind): number for kind, number in given} if isinstance(given, list) else given


@dataclass(frozen=True)
class Counts:
    """The number of letters of a flow."""

    by_kind: Annotated[Mapping[Kind, int], PlainSerializer(_pairs), BeforeValidator(_unpaired)]
    complete: bool
    """Whether all letters are counted."""

    @property
    def total(self) -> int:
        """The number of all letters."""
        return sum(self.by_kind.values())


class Census:
    """Counts the letters of one flow in a stream, and caches the counts by block."""

    def __init__(self, log: Log, flow: str) -> None:
        self.log, self._flow = log, flow
        self._blocks: list[_Block] = []
        self._mutex = threading.Lock()

    def counts(self) -> Counts:
        """The number of letters now, as far as they could be counted within the time limit."""
        with self._mutex:
            bounds = self.log.bounds()
            self._evict(bounds.first)
            done = self._blocks[-1].next if self._blocks else bounds.first
            reached = self._count(done, bounds.next)
            total = sum((block.counts for block in self._blocks), Counter[Kind]())
            return Counts(total, complete=reached >= bounds.next)

    def _evict(self, first: int) -> None:
        self._blocks = [block for block in self._blocks if block.next > first]
        if self._blocks and self._blocks[0].first < first:
            oldest, newer = self._blocks[0], self._blocks[1:]
            self._blocks = []
            self._count(first, oldest.next)
            self._blocks += newer

    def _count(self, start: int, stop: int) -> int:
        until = time.monotonic() + COUNT_S
        reached = start
        for chunk in self.log.read(start, stop):
            counts = self._kinds(chunk.batch) if chunk.batch is not None else Counter[Kind]()
            last = self._blocks[-1] if self._blocks else None
            if last is None or last.next - last.first >= BLOCK:
                self._blocks.append(_Block(chunk.base, chunk.next, counts))
            else:
                last.next = chunk.next
                last.counts.update(counts)
            reached = chunk.next
            if time.monotonic() > until:
                break
        return reached

    def _kinds(self, batch: pa.RecordBatch) -> Counter[Kind]:
        whole = conform(batch, FORM)
        own = pc.fill_null(pc.equal(header(whole, "flow"), self._flow), False)
        whole = whole.filter(own)
        columns = {name: header(whole, name) for name in ("step", "code")}
        groups = pa.table(columns).group_by(["step", "code"]).aggregate([([], "count_all")])
        return Counter({(row["step"], row["code"]): row["count_all"] for row in groups.to_pylist()})
