"""Reading dead letters: all of them in order, or those that match a filter."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict

from penstock.engine.letters.states import STATES, Mark, Marks, State
from penstock.engine.letters.writer import FORM
from penstock.errors import Problem
from penstock.streams.events import HEADERS, KEY, VALUE, conform
from penstock.streams.log import Chunk, Log

LOOK_S = 2.0
"""Seconds that the search for one page may take; the next page continues from there."""

PAGE_BYTES = 4 * 1024 * 1024

FEWEST_READ, MOST_READ = 256, 16_384
"""The number of offsets per read from the end backward: doubled each time, while few letters match."""


@dataclass(frozen=True)
class Letter:
    """A dead letter as it is stored in its stream."""

    # For transfer between processes: bytes need not be text.
    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    offset: int
    time: datetime
    value: bytes
    key: bytes | None
    headers: Mapping[str, str]
    mark: Mark
    obstacle: Problem | None = None
    """The reason why it cannot be replayed in the current revision, if known without running it."""
    in_input: bool = False
    """Whether the input stream of the flow still has the original event."""

    @property
    def step(self) -> str:
        """The processor or sink that could not process the event."""
        return self.headers.get("step", "")

    @property
    def of_sink(self) -> bool:
        """Whether `step` is a sink."""
        return self.headers.get("part") == "sink"

    @property
    def attempt(self) -> int:
        """The number of attempts to process the event."""
        return int(self.headers.get("attempt", 1))

    @property
    def source_offset(self) -> int | None:
        """The offset of the event in the stream that the flow reads."""
        return int(self.headers["offset"]) if "offset" in self.headers else None

    @property
    def text(self) -> bytes:
        """The event to replay, as JSON."""
        return self.value if self.mark.edit is None else self.mark.edit.encode()

    @property
    def event(self) -> dict[str, Any]:
        """The metadata of the event."""
        told = self.headers
        return {
            "offset": self.source_offset,
            "time": datetime.fromisoformat(told["time"]) if "time" in told else None,
            "key": None if self.key is None else self.key.decode(errors="replace"),
            "headers": json.loads(told["headers"]) if "headers" in told else None,
            "sinks": json.loads(told["sinks"]) if "sinks" in told else None,
        }


@dataclass(frozen=True)
class Wanted:
    """A filter of the letters of a flow."""

    step: str | None = None
    code: str | None = None
    contains: str | None = None
    """A text that the stored event or the reason contains."""
    states: frozenset[State] = STATES
    source_offset: int | None = None
    """The offset of the event in the stream that the flow reads."""


@dataclass(frozen=True)
class Found:
    """A page of letters, and the offset of the next page; None if there are no more letters now."""

    letters: Sequence[Letter]
    next: int | None


class Letterbox:
    """The letters of a flow in their stream, which may hold letters of other flows too."""

    def __init__(self, log: Log, flow: str, marks: Marks) -> None:
        self.log, self.flow, self.marks = log, flow, marks

    def page(self, start: int, limit: int, wanted: Wanted) -> Found:
        """Letters from an offset on, up to `limit`, or as many as the time limit allows."""
        letters: list[Letter] = []
        size, until, end = 0, time.monotonic() + LOOK_S, self.log.bounds().next
        for chunk in self.log.read(start, end):
            for letter in self._wanted(chunk, wanted):
                letters.append(letter)
                size += len(letter.value)
                if len(letters) >= limit or size >= PAGE_BYTES:
                    return Found(letters, letter.offset + 1 if letter.offset + 1 < end else None)
            if time.monotonic() > until and chunk.next < end:
                return Found(letters, chunk.next)
        return Found(letters, None)

    def page_before(self, end: int, limit: int, wanted: Wanted) -> Found:
        """Letters below an offset, newest first; `next` is the offset below which the next page begins."""
        letters: list[Letter] = []
        bounds, span = self.log.bounds(), max(limit, FEWEST_READ)
        size, until, end = 0, time.monotonic() + LOOK_S, min(end, bounds.next)
        while end > bounds.first:
            start = max(bounds.first, end - span)
            found = [each for chunk in self.log.read(start, end) for each in self._wanted(chunk, wanted)]
            for letter in reversed(found):
                letters.append(letter)
                size += len(letter.value)
                if len(letters) >= limit or size >= PAGE_BYTES:
                    return Found(letters, letter.offset if letter.offset > bounds.first else None)
            end, span = start, min(2 * span, MOST_READ)
            if time.monotonic() > until and end > bounds.first:
                return Found(letters, end)
        return Found(letters, None)

    def at(self, offsets: Iterable[int]) -> dict[int, Letter]:
        """The letters at some offsets; offsets without a letter are omitted."""
        bounds = self.log.bounds()
        asked = sorted(offset for offset in set(offsets) if bounds.first <= offset < bounds.next)
        found: dict[int, Letter] = {}
        reached = 0
        for offset in asked:
            if offset < reached:
                continue  # read with the chunk of an earlier offset
            chunk = next(self.log.read(offset, bounds.next))
            found |= {letter.offset: letter for letter in self._wanted(chunk, Wanted())}
            reached = chunk.next
        return {offset: found[offset] for offset in asked if offset in found}

    def _wanted(self, chunk: Chunk, wanted: Wanted) -> Iterator[Letter]:
        if chunk.batch is None:
            return
        batch = conform(chunk.batch, FORM)
        kept = self._fitting(batch, wanted)
        if not len(kept):
            return
        marks = self.marks.between(chunk.base, chunk.next)
        moment = datetime.fromtimestamp(chunk.time_us / 1e6, UTC)
        for at in kept.to_pylist():
            mark = marks.get(chunk.base + at, Mark())
            if mark.state not in wanted.states:
                continue
            headers = dict(batch.column(HEADERS)[at].as_py() or ())
            value, key = batch.column(VALUE)[at].as_py(), batch.column(KEY)[at].as_py()
            yield Letter(chunk.base + at, moment, value or b"", key, headers, mark)

    def _fitting(self, batch: pa.RecordBatch, wanted: Wanted) -> pa.Array:
        """The rows that match the filter, regardless of their state."""
        fits = pc.equal(header(batch, "flow"), self.flow)
        source = None if wanted.source_offset is None else str(wanted.source_offset)
        for name, text in (("step", wanted.step), ("code", wanted.code), ("offset", source)):
            if text is not None:
                fits = pc.and_kleene(fits, pc.equal(header(batch, name), text))
        if wanted.contains is not None:
            value = pc.match_substring(batch.column(VALUE), wanted.contains)
            reason = pc.fill_null(pc.match_substring(header(batch, "reason"), wanted.contains), False)
            fits = pc.and_kleene(fits, pc.or_kleene(value, reason))
        return pc.indices_nonzero(pc.fill_null(fits, False))


def header(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A header of every letter."""
    return pc.map_lookup(batch.column(HEADERS), pa.scalar(name), "first")
