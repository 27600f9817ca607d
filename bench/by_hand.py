"""Hand-written PySpark from Parquet to Parquet, in a session that is as warm as a worker."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow.dataset as ds


@dataclass(frozen=True)
class ByHand:
    """A running `bench.jobs.pyspark_parquet`."""

    process: subprocess.Popen[str]
    work: Path

    @property
    def root(self) -> psutil.Process:
        """The root process of the job."""
        return psutil.Process(self.process.pid)

    def run(self, files: Path, passing: int) -> float:
        """Seconds that the job takes for the files; it must output `passing` events."""
        target, checkpoint = self.work / "by-hand-out", self.work / "by-hand-checkpoint"
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        began = time.monotonic()
        print(files, target, checkpoint, file=self.process.stdin, flush=True)
        if self.process.stdout.readline().strip() != "done":
            raise SystemExit("the hand-written job failed")
        seconds = time.monotonic() - began
        if (found := ds.dataset(target, format="parquet").count_rows()) != passing:
            raise SystemExit(f"hand-written: {found} events came out, not {passing}")
        shutil.rmtree(target)
        shutil.rmtree(checkpoint)
        return seconds


@contextlib.contextmanager
def by_hand(work: Path) -> Iterator[ByHand]:
    """A running session, stopped at the end."""
    command = [sys.executable, "-m", "bench.jobs.pyspark_parquet"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    try:
        yield ByHand(process, work)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
