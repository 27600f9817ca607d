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
    cdc,
    delivery,
    fleet,
    growth,
    imports,
    ingest,
    javascript,
    journey,
    kafka,
    kafka_streams,
    latency,
    latency_goal,
    log,
    many,
    mysql_cdc,
    oracle,
    sql,
    start,
    streams,
    takeover,
    throughput,
    windows,
    workers,
)
from bench.turns import ROUNDS

Measure = Callable[[Path, argparse.Namespace], list[str]]

MEASUREMENTS: dict[str, tuple[str, Measure]] = {
    "start": ("Start", lambda work, _: start.measure(work)),
    "throughput": (
        "Throughput",
        lambda work, asked: throughput.measure(work, asked.events or throughput.EVENTS),
    ),
    "delivery": ("Three sinks", lambda work, asked: delivery.measure(work, asked.events or delivery.EVENTS)),
    "workers": ("Workers", lambda work, _: workers.measure(work)),
    "fleet": ("The coordinator", lambda work, _: fleet.measure(work / "fleet")),
    "takeover": ("Takeover", lambda work, _: takeover.measure(work)),
    "many": ("Many pipelines", lambda work, asked: many.measure(work, asked.counts, asked.limit_s)),
    "imports": ("Imports", lambda work, asked: imports.measure(work, asked.pipelines)),
    "log": ("The log", lambda work, _: log.measure(work)),
    "ingest": ("Ingest", lambda work, _: ingest.measure(work)),
    "streams": (
        "Streams through Spark",
        lambda work, asked: streams.measure(work, asked.events or streams.EVENTS),
    ),
    "latency": ("Latency", lambda work, _: latency.measure(work)),
    "goal": ("Latency goal", lambda work, asked: latency_goal.measure(work, asked.rates)),
    "growth": (
        "Growing input",
        lambda work, asked: growth.measure(work, asked.sizes, asked.rounds, asked.plots),
    ),
    "javascript": (
        "JavaScript",
        lambda work, asked: javascript.measure(work, asked.events or javascript.EVENTS),
    ),
    "kafka": ("Kafka", lambda work, asked: kafka.measure(work, asked.events or kafka.EVENTS)),
    "kafka_streams": (
        "Streams in Kafka",
        lambda work, asked: kafka_streams.measure(work, asked.events or kafka_streams.EVENTS),
    ),
    "journey": (
        "Kafka to PostgreSQL",
        lambda work, asked: journey.measure(work, asked.events or journey.EVENTS),
    ),
    "sql": ("Databases", lambda work, asked: sql.measure(work, asked.events or sql.EVENTS)),
    "cdc": ("Change data capture", lambda work, asked: cdc.measure(work, asked.events or cdc.EVENTS)),
    "mysql_cdc": (
        "Change data capture, MariaDB",
        lambda work, asked: mysql_cdc.measure(work, asked.events or mysql_cdc.EVENTS),
    ),
    "windows": ("Windows", lambda work, _: windows.measure(work)),
    "oracle": ("Nexmark", lambda work, asked: oracle.measure(work, asked.nexmark)),
}


def main() -> None:
    """Run the selected measurements."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--events",
        type=int,
        help="events in files (default 4 million) or in a stream (2 million)",
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=growth.SIZES, help="events in each `growth` run"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each `growth` run is repeated")
    parser.add_argument("--plots", type=Path, help="directory in which `growth` draws its curves")
    parser.add_argument(
        "--rates", type=int, nargs="+", default=latency_goal.RATES, help="events per second of `goal`"
    )
    parser.add_argument(
        "--counts", type=int, nargs="+", default=many.COUNTS, help="pipelines in each step of `many`"
    )
    parser.add_argument(
        "--pipelines",
        type=int,
        nargs="+",
        default=imports.PIPELINES,
        help="pipelines in bundles of `imports`",
    )
    parser.add_argument(
        "--limit-s", type=float, default=many.LIMIT_S, help="longest step of `many`, in seconds"
    )
    parser.add_argument(
        "--nexmark", type=int, default=oracle.EVENTS, help="events of `oracle`, in all three streams"
    )
    parser.add_argument("--only", nargs="+", choices=[*MEASUREMENTS], help="some measurements, not all")
    parser.add_argument("--work", type=Path, help="directory for the data, kept; default: a temporary one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as temporary:
        work = chosen.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        os.environ["PENSTOCK_POLICY_PATHS"] = str(work.resolve())  # documents name files below this directory
        print(_machine(), end="\n\n")
        for name, (title, measure) in MEASUREMENTS.items():
            if chosen.only is None or name in chosen.only:
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
