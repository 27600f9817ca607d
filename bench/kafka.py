"""Kafka → filter and project → Kafka, through `penstock run` and hand-written in PySpark."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.data import QUERY, SCHEMA, events
from bench.turns import AGAIN, ROUNDS, median_seconds, speed_table
from penstock.settings import load
from penstock.spark.jars import JarCache
from tests.kafka_server import Kafka, kafka

EVENTS = 2_000_000
PARTITIONS = 4
HAND_WRITTEN = "hand-written PySpark"


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """Run contenders in turn, for several rounds, each to a new topic. Returns the lines of a report."""
    files = work / "events"
    print(f"making {count:,} events…", file=sys.stderr)
    passing = events(files, count)
    jars = JarCache.of(load().settings).fetch("kafka")
    with kafka() as broker:
        source = broker.topic(PARTITIONS)
        for file in sorted(files.glob("part-*")):
            broker.send(source, *file.read_text().splitlines())

        def run(command: Callable[[str], list[str]]) -> Callable[[], float]:
            return lambda: _timed(broker, work, command(broker.topic(PARTITIONS)), passing)

        by_hand = run(lambda target: _by_hand(broker, source, target, work, jars))
        medians = median_seconds(
            {
                "penstock run": run(lambda target: _penstock(broker, source, target, work, ordered=True)),
                "penstock run, ordered: false": run(
                    lambda target: _penstock(broker, source, target, work, ordered=False)
                ),
                HAND_WRITTEN: by_hand,
                HAND_WRITTEN + AGAIN: by_hand,
            }
        )
    size = sum(file.stat().st_size for file in files.glob("part-*"))
    return [
        f"{count:,} JSON events of {size / count:.0f} bytes in {PARTITIONS} partitions, {passing:,} pass; "
        f"whole process, median of {ROUNDS}; the broker is on the same machine",
        "",
        *speed_table(medians, count, HAND_WRITTEN),
    ]


def _timed(broker: Kafka, work: Path, command: list[str], passing: int) -> float:
    target = command[-1]
    for leftover in (work / "checkpoint", work / "home"):
        shutil.rmtree(leftover, ignore_errors=True)
    began = time.monotonic()
    subprocess.run(command[:-1], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    if (found := broker.size(target)) != passing:
        raise SystemExit(f"{found} events came out, not {passing}")
    return seconds


def _penstock(broker: Kafka, source: str, target: str, work: Path, *, ordered: bool) -> list[str]:
    """The command of Penstock, and the topic that it writes to."""
    file = work / "kafka.yaml"
    file.write_text(f"""
kind: Pipeline
metadata: {{name: bench}}
spec:
  source:
    {{type: kafka, brokers: ['{broker.address}'], topics: [{source}], finite: true, schema: "{SCHEMA}"}}
  processors:
    - type: sql
      query: {QUERY}
  sinks:
    - {{type: kafka, brokers: ['{broker.address}'], topic: {target}, ordered: {str(ordered).lower()}}}
""")
    home = str(work / "home")
    return [sys.executable, "-m", "penstock.cli.main", "run", str(file), "--home", home, target]


def _by_hand(broker: Kafka, source: str, target: str, work: Path, jars: list[Path]) -> list[str]:
    """The command of the hand-written job, and the topic that it writes to."""
    given = [broker.address, source, target, str(work / "checkpoint"), ",".join(map(str, jars))]
    return [sys.executable, "-m", "bench.jobs.pyspark_kafka", *given, target]
