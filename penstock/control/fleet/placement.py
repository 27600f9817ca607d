"""Placement of flows on workers, by labels, capacity and load. Computes decisions and writes nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.control.fleet.assignments import WorkerInfo
from penstock.errors import Problem

USUAL_CAPACITY = 100
"""The capacity assumed for a worker without a limit, when loads are compared."""

WORTH = 0.2
"""Fraction of the higher load by which two workers must differ to move a flow: a move costs a restart."""

Labels = Mapping[str, str]

HOME = ""
"""The key of a label that every worker has: its home. A flow stays in the home that has its progress."""


@dataclass(frozen=True)
class Waiting:
    """A flow without a worker."""

    uid: str
    labels: Labels
    tried: Sequence[str] = ()
    """Workers that have failed to start the flow in time."""


@dataclass(frozen=True)
class Settled:
    """A flow that has been running for a while."""

    uid: str
    worker: str
    labels: Labels


@dataclass
class Plan:
    """The decisions of a round: worker by flow, and why the other flows wait."""

    given: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Problem] = field(default_factory=dict)


class Loads:
    """The load of workers that accept flows, updated with each decision."""

    def __init__(self, workers: Iterable[WorkerInfo]) -> None:
        self._workers = {w.id: w for w in workers if w.takes_flows}
        self._held = {w.id: w.flows for w in self._workers.values()}
        self._ordered: dict[frozenset[tuple[str, str]], list[tuple[float, str]]] = {}

    def place(self, waiting: Iterable[Waiting]) -> Plan:
        """Choose a worker for each flow: the one with the lowest load among those the flow may run on."""
        plan = Plan()
        for flow in waiting if self._workers else ():  # no workers at all is reported separately
            worker = self._lowest(flow.labels, avoid=flow.tried) or self._lowest(flow.labels)
            if worker is None:
                plan.refused[flow.uid] = self._refusal(flow.labels)
            else:
                plan.given[flow.uid] = worker
                self._held[worker] += 1
        return plan

    def moves(self, settled: Sequence[Settled], most: int) -> list[str]:
        """Up to `most` flows whose move to another worker would balance the load enough to be worth it."""
        moved: list[str] = []
        by_worker: dict[str, list[Settled]] = {}
        for flow in settled:
            by_worker.setdefault(flow.worker, []).append(flow)
        while len(moved) < most:
            found = self._best_move(by_worker)
            if found is None:
                break
            flow, target = found
            by_worker[flow.worker].remove(flow)
            self._held[flow.worker] -= 1
            self._held[target] += 1
            moved.append(flow.uid)
        return moved

    def is_uneven(self) -> bool:
        """Whether a move between the workers with the highest and the lowest load would be worth it."""
        if len(self._workers) < 2:
            return False
        ordered = sorted(self._workers, key=self._load)
        return self._pays(ordered[-1], ordered[0])

    def _best_move(self, by_worker: Mapping[str, Sequence[Settled]]) -> tuple[Settled, str] | None:
        for source in sorted((w for w in by_worker if w in self._workers), key=self._load, reverse=True):
            targets: dict[frozenset[tuple[str, str]], str | None] = {}
            for flow in by_worker[source]:
                key = frozenset(flow.labels.items())
                if key not in targets:
                    targets[key] = self._lowest(flow.labels, avoid=(source,))
                target = targets[key]
                if target is not None and self._pays(source, target):
                    return flow, target
        return None

    def _pays(self, source: str, target: str) -> bool:
        high, low = self._load(source), self._load(target)
        after = self._load(source, -1) - self._load(target, 1)
        return after >= -1e-9 and high - low >= WORTH * high > 0

    def _load(self, worker: str, more: int = 0) -> float:
        return (self._held[worker] + more) / (self._workers[worker].capacity or USUAL_CAPACITY)

    def _lowest(self, labels: Labels, avoid: Sequence[str] = ()) -> str | None:
        """The worker with the lowest load that has the labels and free capacity.

        There is a heap for each set of labels; entries whose load has changed are pushed back.
        """
        key = frozenset(labels.items())
        if key not in self._ordered:
            able = [w.id for w in self._workers.values() if fits(_all_labels(w), labels)]
            self._ordered[key] = [(self._load(worker), worker) for worker in able]
            heapq.heapify(self._ordered[key])
        heap, aside, found = self._ordered[key], [], None
        while heap and found is None:
            load, worker = heapq.heappop(heap)
            if load != self._load(worker):
                heapq.heappush(heap, (self._load(worker), worker))
                continue
            aside.append((load, worker))
            if worker not in avoid and self._has_room(worker):
                found = worker
        for entry in aside:
            heapq.heappush(heap, entry)
        return found

    def _has_room(self, worker: str) -> bool:
        capacity = self._workers[worker].capacity
        return capacity is None or self._held[worker] < capacity

    @property
    def _ready(self) -> Iterable[WorkerInfo]:
        return self._workers.values()

    def _refusal(self, labels: Labels) -> Problem:
        if not any(
            fits(_all_labels(worker), {HOME: labels.get(HOME, worker.home)}) for worker in self._ready
        ):
            return Problem(
                code="progress_elsewhere",
                message="its progress is on a machine without a running worker",
                hint="start a worker with the same home on that machine; or delete the document and create "
                "it again to start over",
            )
        labels = {key: value for key, value in labels.items() if key != HOME}
        wanted = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        if not any(fits(worker.labels, labels) for worker in self._ready):
            options = " --label ".join(wanted.split(", "))
            return Problem(
                code="no_matching_worker",
                message=f"no worker has the labels {wanted}",
                path="spec.placement.labels",
                hint=f"start one: `penstock worker --label {options}`; or change the labels of the flow",
            )
        which = f" with the labels {wanted}" if labels else ""
        return Problem(
            code="no_capacity",
            message=f"every worker{which} is at capacity",
            hint="start another worker, or raise worker.capacity",
        )


def fits(have: Labels, wanted: Labels) -> bool:
    """Whether a worker has all labels that a flow requires."""
    return all(have.get(key) == value for key, value in wanted.items())


def _all_labels(worker: WorkerInfo) -> Labels:
    return {**worker.labels, HOME: worker.home}
