"""Time that users wait for Penstock: commands, the first pipeline, the page, the first batch."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.product import Product, product
from penstock.settings import load
from penstock.spark.archive import MAKER, ClassArchive

ROOT = Path(__file__).parents[1]
ROUNDS = 3
ORDERS = ROOT / "examples" / "data" / "orders.ndjson"
PENSTOCK = [sys.executable, "-m", "penstock.cli.main"]
PAGE_S = 120.0
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Taken:
    """The time that a command has taken."""

    wall_s: float
    cpu_s: float


def measure(work: Path) -> list[str]:
    """Measure every start that a user waits for. Returns the lines of a report."""
    archive = ClassArchive.of(load({"cache": work / "cache"}, env={}).settings)
    assert archive is not None
    subprocess.run([sys.executable, "-m", MAKER, str(archive.path)], check=True, capture_output=True)
    return [
        *_first(work, archive),
        "",
        *_commands(work),
        "",
        *_page(work, archive),
        "",
        *_warm(work, archive),
    ]


def _first(work: Path, archive: ClassArchive) -> list[str]:
    """`penstock run` of the first example, compared with the same job in PySpark, in alternating rounds."""
    source = work / "first" / "in"
    source.mkdir(parents=True, exist_ok=True)
    shutil.copy(ORDERS, source)
    jobs: dict[str, Callable[[], Taken]] = {
        "plain PySpark": lambda: _by_hand(work, source),
        "plain PySpark again (A/A)": lambda: _by_hand(work, source),
        "`penstock run`": lambda: _run(work, archive),
        "`penstock run`, `class_archive = false`": lambda: _run(work, None),
    }
    taken: dict[str, list[Taken]] = {name: [] for name in jobs}
    for turn in range(ROUNDS + 1):
        for name, job in jobs.items():
            print(f"start: round {turn} of {ROUNDS}, {name}   ", end="\r", file=sys.stderr)
            found = job()
            if turn:  # the first round fills the caches of the system
                taken[name].append(found)
    walls = {name: statistics.median(each.wall_s for each in rounds) for name, rounds in taken.items()}
    cpus = {name: statistics.median(each.cpu_s for each in rounds) for name, rounds in taken.items()}
    plain = walls["plain PySpark"]
    return [
        f"`examples/first.yaml` (60 events), whole processes; the median of {ROUNDS} rounds.",
        "",
        "| | seconds | processor seconds | to plain PySpark |",
        "|---|---|---|---|",
        *(f"| {n} | {walls[n]:.1f} | {cpus[n]:.1f} | {walls[n] / plain:.2f} |" for n in jobs),
    ]


def _by_hand(work: Path, source: Path) -> Taken:
    target = work / "first" / "plain"
    taken = _time([sys.executable, "-m", "bench.jobs.pyspark_first", str(source), str(target)])
    _require_results(target)
    return taken


def _run(work: Path, archive: ClassArchive | None) -> Taken:
    """Run the example in its own directory, with nothing left of an earlier run."""
    place = work / "first" / "penstock"
    shutil.rmtree(place, ignore_errors=True)
    (place / "examples").mkdir(parents=True)
    shutil.copytree(ORDERS.parent, place / "examples" / "data")
    taken = _time([*PENSTOCK, "run", str(ROOT / "examples" / "first.yaml")], place, _environment(archive))
    _require_results(place / "out" / "big-orders")
    return taken


def _require_results(directory: Path) -> None:
    rows = [json.loads(line) for file in directory.rglob("*.json") for line in file.open()]
    if len(rows) != 34:
        raise SystemExit(f"{directory} has {len(rows)} events instead of 34")
    shutil.rmtree(directory)


def _environment(archive: ClassArchive | None) -> dict[str, str]:
    chosen = (
        {"PENSTOCK_CLASS_ARCHIVE": "false"}
        if archive is None
        else {"PENSTOCK_CACHE": str(archive.path.parent)}
    )
    return {**os.environ, "PYTHONPATH": str(ROOT), **chosen}


def _time(command: list[str], cwd: Path = ROOT, env: dict[str, str] | None = None) -> Taken:
    """Run a command to its end. Its processor time includes all processes that it has started."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes that outlive it are reaped here
    before, began = os.times(), time.monotonic()
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    after = os.times()
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Taken(wall, cpu)


def _commands(work: Path) -> list[str]:
    """Commands that need no Spark."""
    commands = {
        "penstock --help": ["--help"],
        "penstock version": ["version"],
        "penstock validate --quick examples/first.yaml": ["validate", "--quick", "examples/first.yaml"],
    }
    rows = []
    for name, arguments in commands.items():
        walls = [_time([*PENSTOCK, *arguments]).wall_s for _ in range(ROUNDS + 1)][1:]
        rows.append(f"| `{name}` | {statistics.median(walls):.2f} |")
    return ["| | seconds |", "|---|---|", *rows]


def _page(work: Path, archive: ClassArchive) -> list[str]:
    """A second `penstock up --demo`: time until the page responds, a worker is ready, and pipelines run."""
    home = work / "page-home"
    _up(home, archive)
    page, ready, running = _up(home, archive)
    return [
        f"`penstock up --demo`, second start: the page answers after {page:.1f} s, a worker is ready after"
        f" {ready:.1f} s, the pipelines of the demo run after {running:.1f} s."
    ]


def _up(home: Path, archive: ClassArchive) -> tuple[float, float, float]:
    began = time.monotonic()
    process = subprocess.Popen(
        [*PENSTOCK, "up", "--demo", "--port", "0", "--home", str(home)],
        env=_environment(archive),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        with httpx.Client(base_url=url, timeout=PAGE_S, trust_env=False) as client:
            times = [
                _until(began, lambda: client.get("/ui/").status_code == 200),
                _until(began, lambda: client.get("/readyz").status_code == 200),
                _until(began, lambda: _runs(client)),
            ]
        return times[0], times[1], times[2]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PAGE_S)


def _runs(client: httpx.Client) -> bool:
    found = client.get("/pipelines").json()["items"]
    return bool(found) and all(each["phase"] == "running" for each in found if each["status"] == "active")


def _until(began: float, done: Callable[[], bool]) -> float:
    while not done():
        if time.monotonic() - began > PAGE_S:
            raise SystemExit("Penstock did not start in time")
        time.sleep(0.05)
    return time.monotonic() - began


def _warm(work: Path, archive: ClassArchive) -> list[str]:
    """Time from the `POST` of a pipeline on a filled stream to its first delivered batch."""
    os.environ["PENSTOCK_CACHE"] = str(archive.path.parent)
    with product(work / "warm-home", workers=1) as running:
        running.create("Stream", "in", {"schema": "id BIGINT"})
        events = "\n".join(json.dumps({"id": i}) for i in range(100))
        answer = running.client.post(
            "/streams/in/events", content=events, headers={"Content-Type": "application/x-ndjson"}
        )
        answer.raise_for_status()
        time.sleep(10)  # until the warm-up of the worker is over
        delays = [_first_batch(running, i) for i in range(ROUNDS * 2)]
    return [
        "First batch of `stream → filter → stream` on a worker that is ready for ten seconds, from the"
        f" request to the events in the other stream: {delays[0]:.2f} s for the first pipeline, median"
        f" {statistics.median(delays[1:]):.2f} s of {len(delays) - 1} more."
    ]


def _first_batch(running: Product, number: int) -> float:
    running.create("Stream", f"out_{number}", {"schema": "id BIGINT"})
    spec: dict[str, Any] = {
        "source": {"type": "stream", "stream": "in"},
        "processors": [{"type": "filter", "where": "id >= 0"}],
        "sinks": [{"type": "stream", "stream": f"out_{number}"}],
    }
    began = time.monotonic()
    running.create("Pipeline", f"first_{number}", spec)
    return _until(began, lambda: running.next_offset(f"out_{number}") == 100)
