"""Many pipelines in one bundle: seconds until they are saved, and response times of the API meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.many import ASKED, asking, p99
from bench.product import Product, product

PIPELINES = (50, 500, 2_000)
BUSY, RATE = 4, 20_000
"""Pipelines that keep the worker busy, and the events per second of each."""

STREAMS = 100
"""Streams that the imported pipelines share."""

PATIENCE_S = 900.0

HEAD = """\
Active pipelines `stream → sql → stream` and `stream → sql → file` (every second one) over {streams} typed
streams, imported by one `POST /bundle` into a fresh Penstock with one worker, which runs {busy} pipelines of
{rate:,} events/s each meanwhile. With one query the pipelines differ in their names and streams only; with
queries of their own each compares with another number. Then the same bundle once more, in which nothing has
changed. Until the first answer, `/pipelines`, `/readyz` and `/overview` are asked twice a second.

| pipelines | queries | POST /bundle, s | once more, s | GET {asked} p99, s |
|---|---|---|---|---|"""


def measure(work: Path, counts: Sequence[int] = PIPELINES) -> list[str]:
    """Import a bundle of each size into a new Penstock. Returns the lines of a report."""
    asked = ", ".join(ASKED)
    lines = [HEAD.format(streams=STREAMS, busy=BUSY, rate=RATE, asked=asked)]
    for count in counts:
        for queries, limit in (("one", lambda _: 3), ("own", lambda number: number)):
            with product(work / f"imports-{count}-{queries}", workers=1) as running:
                lines.append(_row(running, count, queries, limit))
                print(lines[-1], file=sys.stderr)
    return lines


def _row(running: Product, count: int, queries: str, limit: Callable[[int], int]) -> str:
    for number in range(BUSY):
        source = {"type": "generate", "rate": RATE}
        running.create("Pipeline", f"busy-{number}", {"source": source, "sinks": [{"type": "drop"}]})
    out = running.home / "out"
    documents = [_stream(f"{kind}{number}") for number in range(STREAMS) for kind in ("in", "out")]
    documents += [_pipeline(number, limit(number), out) for number in range(count)]
    with asking(running.url) as took:
        first = _imported(running, documents)
    again = _imported(running, documents)
    answers = ", ".join(f"{p99(took[path]):.2f}" for path in ASKED)
    return f"| {count:,} | {queries} | {first:.1f} | {again:.1f} | {answers} |"


def _imported(running: Product, documents: list[dict[str, Any]]) -> float:
    """Seconds until a bundle is saved."""
    began = time.monotonic()
    answer = running.client.post("/bundle", json={"documents": documents}, timeout=PATIENCE_S)
    if answer.is_error:
        raise SystemExit(f"POST /bundle: {answer.text[:2000]}")
    return time.monotonic() - began


def _stream(name: str) -> dict[str, Any]:
    return {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": "id BIGINT, amount DOUBLE"}}


def _pipeline(number: int, limit: int, out: Path) -> dict[str, Any]:
    stream = {"type": "stream", "stream": f"out{number % STREAMS}"}
    file = {"type": "file", "path": str(out / str(number)), "format": "parquet"}
    query = f"SELECT id, amount * 1.1 AS amount FROM input WHERE id > {limit}"
    spec = {
        "source": {"type": "stream", "stream": f"in{number % STREAMS}"},
        "processors": [{"type": "sql", "query": query}],
        "sinks": [file if number % 2 else stream],
    }
    return {"kind": "Pipeline", "metadata": {"name": f"imported-{number}"}, "spec": spec}
