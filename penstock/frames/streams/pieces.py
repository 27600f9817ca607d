"""The locations of a stream's events, for the reader in Java: pieces of files that consist of frames.

Events that Java cannot read directly, since the stream's schema has changed or its storage has no such files,
are first written to a temporary file with the current schema.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.frames.streams.batches import Run
from penstock.spark.planned_source import Slice
from penstock.streams.events import META, conform, payload_schema
from penstock.streams.frames import Frame, encode_body
from penstock.streams.log import Log
from penstock.streams.storage import Damaged, Place, Record, Span

Piece = dict[str, Any]
"""`path`, `at` and `end` are bytes of a file; `first` and `next` are the requested offsets in them."""


class Pieces:
    """Finds the pieces of runs."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._made: Path | None = None

    def of(self, runs: Iterable[Run]) -> list[Piece]:
        """The pieces of consecutive runs; adjacent pieces are merged."""
        found: list[Piece] = []
        for run, place in self._places(runs):
            last = found[-1] if found else None
            if place.record is not None:
                _add_record(found, run, place, place.record)
                continue
            near = last is not None and last["path"] == place.path and last["next"] == run.base
            if last is not None and near and last["at"] <= place.at <= last["end"] <= place.end:
                last["end"], last["next"] = place.end, run.next
                continue
            found.append(
                {"path": place.path, "at": place.at, "end": place.end, "first": run.base, "next": run.next}
            )
        return found

    def clear(self) -> None:
        """Remove the files that were written; call it when no task reads them any more."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
            self._made = None

    def _places(self, runs: Iterable[Run]) -> Iterator[tuple[Run, Place]]:
        """The place of each run's frame. The reader detects and counts damage."""
        ddl = self._log.storage.spec.schema_
        odd: list[Run] = []
        for run in runs:
            assert run.span is not None, "runs of lost events have no place"
            place = self._log.storage.place(run.span)
            if place is not None and _is_current(place.shape, ddl):
                yield from self._written(odd)
                odd = []
                yield run, place
            else:
                odd.append(run)
        yield from self._written(odd)

    def _written(self, runs: Sequence[Run]) -> Iterator[tuple[Run, Place]]:
        """Write events with the current schema to a separate file."""
        if not runs:
            return
        if self._made is None:
            self._made = Path(tempfile.mkdtemp(prefix="penstock-read-"))
        descriptor, path = tempfile.mkstemp(suffix=".log", dir=self._made)
        at = 0
        with os.fdopen(descriptor, "wb") as file:
            for run in runs:
                assert run.span is not None
                data = self._frame(run.span)
                for part in data:
                    file.write(part)
                size = sum(map(len, data))
                yield run, Place(path, at, at + size, b"")
                at += size

    def _frame(self, span: Span) -> list[Any]:
        """The frame of a span with the current schema; empty if the events are damaged."""
        storage = self._log.storage
        try:
            batch = storage.fetch(span)
        except Damaged:
            return []
        payload = payload_schema(storage.spec.schema_)
        beside = [field for field in META if field.name in batch.schema.names]
        body = encode_body(conform(batch, pa.schema([*payload, *beside])), "none")
        return Frame(span.base, span.time_us, body).encode()


def _add_record(found: list[Piece], run: Run, place: Place, record: Record) -> None:
    """Add a frame that is a record in Kafka, to the last piece if they are adjacent."""
    assert run.span is not None
    told, size = [record.position, run.span.base, run.span.time_us], place.end - place.at
    last = found[-1] if found and found[-1].get("topic") == record.topic else None
    if last is not None and last["records"][-1] == told and last["next"] == run.base:
        last["next"] = run.next  # the next part of the same frame
    elif last is not None and last["next"] == run.base:
        last["records"].append(told)
        last["end"], last["next"] = last["end"] + size, run.next
    else:
        where = {"topic": record.topic, "partition": record.partition, "client": dict(record.client)}
        piece = {**where, "records": [told], "at": 0, "end": size, "first": run.base, "next": run.next}
        found.append(piece)


@lru_cache(maxsize=1024)
def _is_current(shape: bytes, ddl: str | None) -> bool:
    """Whether the columns of a stored schema have the types of the stream's current schema."""
    with contextlib.suppress(pa.ArrowInvalid, OSError):
        stored = pa.ipc.read_schema(pa.py_buffer(shape))
        wanted = {field.name: field.type for field in (*payload_schema(ddl), *META)}
        return all(wanted.get(field.name, field.type) == field.type for field in stored)
    return False


def slice_of(pieces: list[Piece], gap: str, *, raw: bool) -> Slice:
    """A task for `FrameReader.java`."""
    return {"gap": gap, "raw": raw, "pieces": pieces}


def inline(batch: pa.RecordBatch) -> Slice:
    """A task that contains its events."""
    data = b"".join(map(bytes, Frame(0, 0, encode_body(batch, "none")).encode()))
    piece = {"data": base64.b64encode(data).decode(), "at": 0, "end": len(data), "first": 0}
    return slice_of([{**piece, "next": batch.num_rows}], "fail", raw=False)
