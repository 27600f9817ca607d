"""The coordinator alone: rounds with many flows and simulated workers, without Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import event

from penstock.control.fleet.assignments import Flows, Report
from penstock.control.fleet.coordinator import Coordinator
from penstock.control.questions.rpc import RpcClient
from penstock.control.registry import Registry
from penstock.control.registry.changes import Addition, add
from penstock.control.registry.records import JsonObject
from penstock.settings import load

FLOWS, WORKERS, ZONES = 10_000, 500, 10

HEAD = """\
{flows:,} flows, every second one bound to one of {zones} labels, and {workers} workers that only report, on
{database}. A round is all that the coordinator does in one tick.

| round | s | statements |
|---|---|---|"""


class Silent(RpcClient):
    """A client that does not notify workers: there are none at the addresses."""

    def poke(self, worker: object) -> None:
        """Do nothing."""


class Fleet:
    """A registry with flows and workers, and its coordinator."""

    def __init__(self, url: str, home: Path, flows: int, workers: int) -> None:
        settings = load({"home": home, "registry.url": url}, env={}, cwd=home).settings
        self.registry = Registry.open(url)
        self.flows = Flows(self.registry)
        self.coordinator = Coordinator(settings, self.flows, Silent(settings.questions.deadline_ms / 1000))
        self.statements = 0
        event.listen(self.registry.engine, "before_cursor_execute", self._count)
        with self.registry.begin() as conn:
            names = {number: f"flow {number}" for number in range(flows)}
            new = [
                Addition("Pipeline", name.replace(" ", "_"), name, _document(name, number), "active")
                for number, name in names.items()
            ]
            add(conn, new, "bench")
        for number in range(workers):
            self.join(number)

    def join(self, number: int) -> None:
        """Add a worker."""
        labels = {"zone": str(number % ZONES)}
        self.flows.join(f"w{number:04}", 1, "http://127.0.0.1:1", "", 3600.0, {}, labels=labels)

    def round(self) -> tuple[float, int]:
        """Run one round. Returns its seconds and its number of SQL statements."""
        before, began = self.statements, time.perf_counter()
        self.coordinator.step()
        return time.perf_counter() - began, self.statements - before

    def run_all(self) -> None:
        """Let every worker report that its flows run."""
        for worker in self.flows.workers():
            held = self.flows.assigned(worker.id)
            told = [Report(each.uid, each.flow.epoch, 1, "running") for each in held if each.flow]
            self.flows.report(worker.id, told)

    def _count(self, *_: object) -> None:
        self.statements += 1


def measure(work: Path, url: str | None = None, flows: int = FLOWS, workers: int = WORKERS) -> list[str]:
    """Measure rounds on SQLite, or on the database of a URL. Returns the lines of a report."""
    work.mkdir(parents=True, exist_ok=True)
    url = url or f"sqlite:///{work / 'fleet.db'}"
    lines = [HEAD.format(flows=flows, workers=workers, zones=ZONES, database=url.partition(":")[0])]
    fleet = Fleet(url, work, flows, workers)
    for what, (seconds, statements) in _rounds(fleet):
        lines.append(f"| {what} | {seconds:.2f} | {statements} |")
        print(lines[-1], file=sys.stderr)
    fleet.registry.close()
    return lines


def _rounds(fleet: Fleet) -> Iterator[tuple[str, tuple[float, int]]]:
    yield "every flow is placed", fleet.round()
    fleet.run_all()
    yield "nothing to do", fleet.round()
    fleet.flows.leave("w0000")
    yield "a worker is gone", fleet.round()
    for number in range(WORKERS, WORKERS + 10):
        fleet.join(number)
    yield "ten workers have joined", fleet.round()
    fleet.flows.draining("w0001")
    yield "a worker is drained", fleet.round()


def _document(name: str, number: int) -> JsonObject:
    labels = {"zone": str(number % ZONES)} if number % 2 else {}
    spec = {"source": {"type": "generate"}, "sinks": [{"type": "drop"}], "placement": {"labels": labels}}
    return {"apiVersion": "penstock/v1", "kind": "Pipeline", "metadata": {"name": name}, "spec": spec}
