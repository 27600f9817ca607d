"""Many small pipelines on one worker: seconds until all run, response times of the API, and idle cost."""

from __future__ import annotations

import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.processes import cpu_s, pss
from bench.product import Product, product

COUNTS = (10, 50, 100, 300)
LIMIT_S, WATCH_S, SETTLE_S, ASK_S = 900.0, 30, 20, 0.5

ASKED = ("/pipelines", "/readyz", "/overview")

HEAD = """\
Pipelines `stream → filter → drop` without events, posted one after the other to a fresh Penstock with one
worker. Until all run, `/pipelines`, `/readyz` and `/overview` are asked twice a second. Memory is the PSS of
all processes of the worker. Each step may take {limit:g} s; one that takes longer says how far it came.

| pipelines | all run, s | slowest POST, s | GET /pipelines p50, p99, s | /readyz, /overview p99, s \
| idle cores: worker, server | memory, MiB | all run after kill -9, s |
|---|---|---|---|---|---|---|---|"""


def measure(work: Path, counts: Sequence[int] = COUNTS, limit_s: float = LIMIT_S) -> list[str]:
    """Start a new Penstock for each count and measure it. Returns the lines of a report."""
    lines = [HEAD.format(limit=limit_s)]
    for count in counts:
        with product(work / f"many-{count}", workers=1) as running:
            lines.append(_row(running, count, limit_s))
            print(lines[-1], file=sys.stderr)
    return lines


def _row(running: Product, count: int, limit_s: float) -> str:
    running.create("Stream", "numbers", {})
    with asking(running.url) as took:
        began = time.monotonic()
        posts = list(_posts(running, count, began + limit_s))
        all_run, started = _until_all_run(running, count, began, limit_s)
    time.sleep(SETTLE_S)
    worker = psutil.Process(running.workers()[0])
    cores = _cores(running, worker)
    memory = pss(worker) / 2**20
    again = "-"
    if all_run:
        worker.send_signal(signal.SIGKILL)
        began = time.monotonic()
        _, again = _until_all_run(running, count, began, limit_s, without=worker.pid)
    listed, ready, overview = (took[path] for path in ASKED)
    return (
        f"| {count} | {started} | {max(posts):.1f} | {statistics.median(listed):.2f}, {p99(listed):.2f} |"
        f" {p99(ready):.2f}, {p99(overview):.2f} | {cores[0]:.2f}, {cores[1]:.2f} | {memory:,.0f} |"
        f" {again} |"
    )


def _posts(running: Product, count: int, until: float) -> Iterator[float]:
    spec: dict[str, Any] = {
        "source": {"type": "stream", "stream": "numbers"},
        "processors": [{"type": "filter", "where": "length(value) > 3"}],
        "sinks": [{"type": "drop"}],
    }
    for i in range(count):
        began = time.monotonic()
        if began > until:
            return
        running.create("Pipeline", f"small-{i}", spec)
        yield time.monotonic() - began


def _until_all_run(
    running: Product, count: int, began: float, limit_s: float, without: int | None = None
) -> tuple[bool, str]:
    """Whether all run in time, on workers other than `without`; and the seconds, or the phases reached."""
    phases: Counter[str] = Counter()
    while time.monotonic() - began < limit_s:
        time.sleep(0.5)
        with suppress(httpx.HTTPError):
            phases, alive = _phases(running.client), running.workers()
            after = time.monotonic() - began
            print(f"{after:.0f} s: {dict(phases)}        ", end="\r", file=sys.stderr)
            if phases["running"] == count and alive and without not in alive:
                return True, f"{after:.0f}"
    return False, f"not in {limit_s:g} s: {', '.join(f'{n} {phase}' for phase, n in phases.most_common())}"


def _phases(client: httpx.Client) -> Counter[str]:
    found: Counter[str] = Counter()
    total = 1
    while found.total() < total:
        page = client.get("/pipelines", params={"limit": 100, "offset": found.total()}).json()
        found.update(item["phase"] for item in page["items"])
        total = page["total"] if page["items"] else 0
    return found


@contextmanager
def asking(url: str) -> Iterator[dict[str, list[float]]]:
    """Poll the API in the background. Yields the response times in seconds, by path."""
    took: dict[str, list[float]] = {path: [] for path in ASKED}
    done = threading.Event()

    def ask(path: str) -> None:
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
            while not done.is_set():
                began = time.monotonic()
                with suppress(httpx.HTTPError):
                    client.get(path)
                took[path].append(time.monotonic() - began)
                done.wait(max(0.0, ASK_S - took[path][-1]))

    threads = [threading.Thread(target=ask, args=(path,), daemon=True) for path in ASKED]
    for thread in threads:
        thread.start()
    try:
        yield took
    finally:
        done.set()
        for thread in threads:
            thread.join()


def p99(times: list[float]) -> float:
    """The 99th percentile of response times."""
    return sorted(times)[int(0.99 * (len(times) - 1))]


def _cores(running: Product, worker: psutil.Process) -> tuple[float, float]:
    """The number of cores that the worker's processes and the server use."""

    def used() -> tuple[float, float]:
        return cpu_s(worker), running.cpu_s()

    began, before = time.monotonic(), used()
    time.sleep(WATCH_S)
    took = time.monotonic() - began
    after = used()
    return (after[0] - before[0]) / took, (after[1] - before[1]) / took
