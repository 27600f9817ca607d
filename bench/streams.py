"""Stream → SQL → stream, compared with the same job on Parquet files, in Penstock and hand-written."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

from bench.by_hand import by_hand
from bench.data import QUERY
from bench.product import product
from bench.stream_jobs import file_job, fill, stream_job
from bench.turns import AGAIN, ROUNDS, median_seconds, speed_table

EVENTS = 2_000_000
STEP = {"type": "sql", "query": QUERY}
HAND_WRITTEN = "hand-written PySpark, Parquet files"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """The lines of a report."""
    with product(work / "streams-home", workers=1) as running, by_hand(work) as pyspark:
        files = work / "parquet"
        passing = sum(fill(running, count, files))
        numbers = itertools.count()

        def stream(max_events: int) -> Callable[[], float]:
            batch = {"max_events": max_events}
            return lambda: stream_job(running, f"job-{next(numbers)}", STEP, passing, batch)

        def by_files() -> float:
            target = work / "files-out"
            shutil.rmtree(target, ignore_errors=True)
            return file_job(running, f"job-{next(numbers)}", STEP, files, target)

        medians = median_seconds(
            {
                "stream → sql → stream, batches of 10,000": stream(10_000),
                "stream → sql → stream, batches of 10,000" + AGAIN: stream(10_000),
                "stream → sql → stream, batches of 50,000": stream(50_000),
                "Penstock, Parquet files": by_files,
                HAND_WRITTEN: lambda: pyspark.run(files, passing),
                HAND_WRITTEN + AGAIN: lambda: pyspark.run(files, passing),
            }
        )
    return [
        f"{count:,} typed events of about 200 bytes, {passing:,} pass; on a warm worker, or in a session "
        f"that is as warm, from the start of the job to its last event, median of {ROUNDS}:",
        "",
        *speed_table(medians, count, HAND_WRITTEN),
    ]
