"""`make bench`: all measurements, as Markdown on standard output."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

from bench import (
    delivery,
    ingest,
    javascript,
    log,
    many,
    oracle,
    start,
    streams,
    throughput,
    windows,
    workers,
)

MEASUREMENTS: dict[str, tuple[str, Callable[[Path, argparse.Namespace], list[str]]]] = {
    "start": ("Start", lambda work, _: start.measure(work)),
    "throughput": ("Throughput", lambda work, asked: throughput.measure(work, asked.events)),
    "delivery": ("Three sinks", lambda work, asked: delivery.measure(work, asked.events)),
    "workers": ("Workers", lambda work, _: workers.measure(work)),
    "many": ("Many pipelines", lambda work, asked: many.measure(work, asked.counts, asked.limit_s)),
    "log": ("The log", lambda work, _: log.measure(work)),
    "ingest": ("Ingest", lambda work, _: ingest.measure(work)),
    "streams": ("Streams through Spark", lambda work, asked: streams.measure(work, asked.events)),
    "javascript": ("JavaScript", lambda work, asked: javascript.measure(work, asked.events)),
    "windows": ("Windows", lambda work, _: windows.measure(work)),
    "oracle": ("Nexmark", lambda work, asked: oracle.measure(work, asked.nexmark)),
}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000, help="events of the throughput job")
    parser.add_argument(
        "--counts", type=int, nargs="+", default=many.COUNTS, help="pipelines in each step of `many`"
    )
    parser.add_argument(
        "--limit-s", type=float, default=many.LIMIT_S, help="longest step of `many`, in seconds"
    )
    parser.add_argument(
        "--nexmark", type=int, default=oracle.EVENTS, help="events of `oracle`, in all three streams"
    )
    parser.add_argument("--only", choices=[*MEASUREMENTS], help="one measurement instead of all")
    parser.add_argument("--work", type=Path, help="directory for the data, kept; default: a temporary one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        work = chosen.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        print(_machine(), end="\n\n")
        for name, (title, measure) in MEASUREMENTS.items():
            if chosen.only in (None, name):
                print(f"## {title}", *measure(work.resolve(), chosen), sep="\n", end="\n\n")


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, "
        f"Python {platform.python_version()}, load {load:.1f} before the start."
    )


if __name__ == "__main__":
    main()
