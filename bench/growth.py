"""Stream → SQL → stream with a growing number of events: the cost per event, and the worker's memory."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.by_hand import by_hand
from bench.plot import plot
from bench.processes import cpu_s, pss
from bench.product import product
from bench.stream_jobs import FILE, FRAME, fill, first_files, stream_job
from bench.streams import STEP
from bench.turns import AGAIN, ROUNDS, take_turns

SIZES = (1_000_000, 4_000_000, 16_000_000)
STREAMS, HAND_WRITTEN = "stream → sql → stream", "hand-written PySpark, Parquet files"


@dataclass(frozen=True)
class Figures:
    """The figures of one run."""

    seconds: float
    cpu_s: float
    memory: int
    """Bytes of memory of all processes of the contender at the end of the run."""

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.cpu_s:.1f} s of processor time, {self.memory / 2**20:,.0f} MiB"


def measure(
    work: Path, sizes: Sequence[int] = SIZES, rounds: int = ROUNDS, plots: Path | None = None
) -> list[str]:
    """Run each size in turn, for several rounds. Returns the lines of a report; draws curves in `plots`."""
    if any(size <= 0 or size % FILE for size in sizes):
        raise SystemExit(f"a size is a multiple of {FILE:,}")
    sizes = sorted(sizes)
    with product(work / "growth-home", workers=1) as running, by_hand(work) as pyspark:
        worker = psutil.Process(running.workers()[0])
        parquet = work / "growth-parquet"
        passing = fill(running, sizes[-1], parquet)
        numbers = itertools.count()

        def contender(name: str, size: int) -> Callable[[], Figures]:
            expected = sum(passing[: size // FRAME])
            if name == HAND_WRITTEN:
                files = first_files(parquet, size, work / f"growth-{next(numbers)}")
                return lambda: _figures(pyspark.root, lambda: pyspark.run(files, expected))
            return lambda: _figures(
                worker, lambda: stream_job(running, f"job-{next(numbers)}", STEP, expected, until=size)
            )

        rows = [
            (name, size, again)
            for name in (STREAMS, HAND_WRITTEN)
            for size, again in [*((size, "") for size in sizes), (sizes[0], AGAIN)]
        ]
        contenders = {f"{name}, {size:,}{again}": contender(name, size) for name, size, again in rows}
        first = [f"{name}, {size:,}" for name, size, again in rows if size == sizes[0] and not again]
        found = take_turns(contenders, rounds, warm_up=first)
    lines = [
        "Cost of an event as the input grows. Processor time and memory (proportional set size) are of all "
        f"processes of the worker, or of the hand-written job, and memory is at the end; median of {rounds}.",
        "",
        "| | events | seconds | events/s | µs of processor time per event | to the smallest | memory, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    base = 0.0
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {"cost": {}, "memory": {}}
    for (name, size, again), figures in zip(rows, found.values(), strict=True):
        seconds, used, memory = (
            statistics.median(getattr(each, field) for each in figures)
            for field in ("seconds", "cpu_s", "memory")
        )
        if size == sizes[0] and not again:
            base = used / size
        if not again:
            curves["cost"].setdefault(name, []).append((size, used / size * 1e6))
            curves["memory"].setdefault(name, []).append((size, memory / 2**20))
        lines.append(
            f"| {name}{again} | {size:,} | {seconds:.1f} | {size / seconds:,.0f} | {used / size * 1e6:.2f} "
            f"| {used / size / base:.2f} | {memory / 2**20:,.0f} |"
        )
    if plots is not None:
        cost, memory_ = "Processor time per event", "Memory at the end of a run"
        plot(plots / "growth-cost.svg", cost, "events", "µs", curves["cost"])
        plot(plots / "growth-memory.svg", memory_, "events", "MiB", curves["memory"])
    return lines


def _figures(process: psutil.Process, run: Callable[[], float]) -> Figures:
    used = cpu_s(process)
    seconds = run()
    return Figures(seconds, cpu_s(process) - used, pss(process))
