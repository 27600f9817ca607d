"""A sink with scripted failures, for tests of code that depends on the behavior of sinks."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Rejected, Sink, SinkWriter
from penstock.errors import Backpressure, Fatal, Retryable
from penstock.frames.site import Site

if TYPE_CHECKING:
    import pyarrow as pa


class FaultySink(Sink):
    """Writes each batch as a file of JSON lines, and fails as scripted.

    Each attempt uses the next word of the script; after the last word, all attempts succeed. Words are `ok`,
    `fail`, `fatal`, `busy:S` (asks to wait S seconds), `slow:S` (takes S seconds longer), `hang:S` (the same,
    and can't be canceled), `stall:S` (the same, in tasks of Spark), `break:N` (the tasks of partition N and
    later ones fail), `lose` (writes, then fails as if the response was lost) and `reject` (rejects the first
    event). The position in the script is stored in the directory, so that a script resumes after a crash.

    Delivery is at-least-once: a repeated batch is written as another file.
    """

    type: Literal["faulty"] = "faulty"
    path: str = Field(min_length=1, description="The directory.")
    script: list[str] = Field(default_factory=list, description="What its attempts do.")

    guarantee: ClassVar = "at-least-once"
    example: ClassVar = "type: faulty\npath: out\nscript: [fail, 'slow:2', ok]\n"

    def open(self, site: Site) -> SinkWriter:
        return _Writer(Path(self.path), self.script)


class _Writer(SinkWriter):
    def __init__(self, directory: Path, script: list[str]) -> None:
        self.directory, self.script = directory, script
        self._cancelled = threading.Event()

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        from pyspark.sql import functions as f

        df = events.frame()
        self.directory.mkdir(parents=True, exist_ok=True)
        attempt = _next(self.directory / "attempts")
        word, _, seconds = (self.script[attempt] if attempt < len(self.script) else "ok").partition(":")
        if self._cancelled.is_set():
            raise Retryable("cancelled")
        if word == "fail":
            raise Retryable(f"attempt {attempt} fails")
        if word == "fatal":
            raise Fatal(f"attempt {attempt} is hopeless")
        if word == "busy":
            raise Backpressure(f"attempt {attempt} is too early", float(seconds))
        if word == "slow" and self._cancelled.wait(float(seconds)):
            raise Retryable("cancelled")
        if word == "hang":
            time.sleep(float(seconds))
        if word == "stall":
            df = df.mapInArrow(partial(_stalled, seconds=float(seconds)), df.schema)
        if word == "break":
            df = df.mapInArrow(partial(_broken, first=int(seconds)), df.schema)
        rows = [row[0] for row in df.select(f.to_json(f.struct("*"))).collect()]
        rejected = [Rejected(rows.pop(0), "refused", "as the script says")] if word == "reject" else []
        self._keep(rows, delivery, attempt)
        if word == "lose":
            raise Retryable(f"the answer to attempt {attempt} is lost")
        return Delivered(len(rows), rejected)

    def cancel(self) -> None:
        self._cancelled.set()

    def _keep(self, rows: list[str], delivery: DeliveryId, attempt: int) -> None:
        file = self.directory / f"{attempt:06d}-batch-{delivery.batch:06d}.json"
        half = file.with_suffix(".half")
        half.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        half.rename(file)


def _broken(batches: Iterator[pa.RecordBatch], first: int) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is not None and task.partitionId() >= first:
        raise RuntimeError("as the script says")
    yield from batches


def _stalled(batches: Iterator[pa.RecordBatch], seconds: float) -> Iterator[pa.RecordBatch]:
    time.sleep(seconds)
    yield from batches


def deliveries(directory: Path) -> list[tuple[int, list[dict[str, object]]]]:
    """The batches that a faulty sink has received: the number and the events of each, in order of arrival."""
    found = []
    for file in sorted(directory.glob("*.json")):
        batch = int(file.stem.rpartition("-")[2])
        found.append((batch, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]))
    return found


def _next(counter: Path) -> int:
    """The number of this attempt; the size of a file is the counter."""
    with counter.open("ab") as out:
        out.write(b".")
        out.flush()
        os.fsync(out.fileno())
    return counter.stat().st_size - 1
