"""`make bench`: all measurements, as Markdown on standard output."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

import psutil

from bench import throughput, workers


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--events", type=int, default=4_000_000, help="events of the throughput job")
    parser.add_argument("--only", choices=["throughput", "workers"], help="one measurement instead of all")
    parser.add_argument("--work", type=Path, help="directory for the data, kept; default: a temporary one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        work = chosen.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        print(_machine(), end="\n\n")
        if chosen.only in (None, "throughput"):
            print("## Throughput", *throughput.measure(work.resolve(), chosen.events), sep="\n", end="\n\n")
        if chosen.only in (None, "workers"):
            print("## Workers", *workers.measure(work.resolve()), sep="\n", end="\n")


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, "
        f"Python {platform.python_version()}, load {load:.1f} before the start."
    )


if __name__ == "__main__":
    main()
