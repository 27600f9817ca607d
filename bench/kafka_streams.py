"""Stream → SQL → stream with `storage: kafka`, compared with topic → topic hand-written in PySpark."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.data import QUERY, events
from bench.product import product
from bench.stream_jobs import fill, stream_job
from bench.turns import AGAIN, ROUNDS, median_seconds, speed_table
from penstock.settings import load
from penstock.spark.jars import JarCache
from tests.kafka_server import Kafka, kafka

EVENTS = 1_000_000
PARTITIONS = 2
STEP = {"type": "sql", "query": QUERY}
HAND_WRITTEN = "hand-written PySpark, JSON records"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """The lines of a report."""
    files = work / "events"
    with kafka() as broker:
        env = {"PENSTOCK_KAFKA_BROKERS": broker.address, "PENSTOCK_KAFKA_REPLICATION": "1"}
        with product(work / "kafka-home", workers=1, env=env) as running, _by_hand(broker, work) as by_hand:
            passing, numbers = sum(fill(running, count, storage="kafka")), itertools.count()
            by_hand_passing, source = events(files, count), broker.topic(PARTITIONS)
            for file in sorted(files.glob("part-*")):
                broker.send(source, *file.read_text().splitlines())

            def stream(max_events: int) -> Callable[[], float]:
                batch, name = {"max_events": max_events}, "job-{}"
                return lambda: stream_job(
                    running, name.format(next(numbers)), STEP, passing, batch, storage="kafka"
                )

            medians = median_seconds(
                {
                    "Kafka stream → sql → Kafka stream, batches of 10,000": stream(10_000),
                    "Kafka stream → sql → Kafka stream, batches of 10,000" + AGAIN: stream(10_000),
                    "Kafka stream → sql → Kafka stream, batches of 50,000": stream(50_000),
                    HAND_WRITTEN: lambda: by_hand(source, by_hand_passing),
                    HAND_WRITTEN + AGAIN: lambda: by_hand(source, by_hand_passing),
                }
            )
    return [
        f"{count:,} typed events of about 200 bytes, half pass; the broker is on the same machine; on a "
        f"warm worker, or in a session that is as warm, from the start of the job to its last event, median "
        f"of {ROUNDS}:",
        "",
        *speed_table(medians, count, HAND_WRITTEN),
    ]


@contextlib.contextmanager
def _by_hand(broker: Kafka, work: Path) -> Iterator[Callable[[str, int], float]]:
    """Start a session. Yields a function that runs the job in it and returns the seconds that it took."""
    jars = ",".join(map(str, JarCache.of(load().settings).fetch("kafka")))
    command = [sys.executable, "-m", "bench.jobs.pyspark_kafka_kept", jars]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    assert process.stdout is not None

    def run(source: str, passing: int) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        target, checkpoint = broker.topic(PARTITIONS), work / "by-hand-checkpoint"
        began = time.monotonic()
        print(broker.address, source, target, checkpoint, file=process.stdin, flush=True)
        if process.stdout.readline().strip() != "done":
            raise SystemExit("the hand-written job failed")
        seconds = time.monotonic() - began
        if (found := broker.size(target)) != passing:
            raise SystemExit(f"hand-written: {found} events came out, not {passing}")
        shutil.rmtree(checkpoint)
        return seconds

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait(60)
