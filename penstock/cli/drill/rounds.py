"""The rounds of a drill: a fault in one worker, and the time until other workers take over its pipelines."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.cli.drill.cluster import POLL_S, START_S, Cluster, Interrupted, Member
from penstock.cli.drill.watch import Watch

Kind = Literal["kill", "freeze", "cut"]
KINDS: tuple[Kind, ...] = ("kill", "freeze", "cut")

LONGEST_TAKEOVER_S = 120.0
"""Seconds beyond the lease after which a pipeline counts as not taken over."""

SHORTEST, LONGEST = 1.3, 2.0
"""Minimum and maximum duration of a freeze or cut, in leases: always longer than one."""

END_S = 30.0
"""Seconds for a worker that has lost its lease to notice and exit."""


@dataclass(frozen=True)
class Fault:
    """A fault, as generated from the seed."""

    kind: Kind
    order: tuple[int, ...]
    """Numbers of workers: the first one that has pipelines is the victim."""
    pause_s: float
    leases: float


@dataclass
class Round:
    """A fault and its effects."""

    number: int
    kind: Kind
    worker: int
    lasted_s: float | None
    takeover_s: dict[str, float] = field(default_factory=dict)
    """By pipeline: seconds from the fault to the first batch on another worker."""
    stuck: list[str] = field(default_factory=list)
    """Pipelines that were not taken over in time."""


def plan_faults(seed: int, rounds: int, workers: int, kinds: Sequence[Kind]) -> list[Fault]:
    """Generate faults from a seed. All kinds are about equally frequent."""
    chance = random.Random(seed)
    faults = []
    for _ in range(rounds):
        kind, order = chance.choice(kinds), tuple(chance.sample(range(1, workers + 1), workers))
        faults.append(Fault(kind, order, chance.uniform(0, 2), chance.uniform(SHORTEST, LONGEST)))
    return faults


def run_round(
    number: int,
    fault: Fault,
    cluster: Cluster,
    watch: Watch,
    say: Callable[[str], None],
    *,
    ready: int,
    last: bool,
) -> Round:
    """Wait for `ready` workers, inject the fault into one of them, and wait for the takeover."""
    victim, pipelines = _victim(fault, ready, cluster)
    time.sleep(fault.pause_s)
    before = {pipeline: watch.seen(pipeline).epoch for pipeline in pipelines}
    lasts_s = None if fault.kind == "kill" else round(fault.leases * cluster.lease_s, 1)
    done = Round(number, fault.kind, victim.number, lasts_s)
    began = time.time()
    _begin(fault.kind, victim, cluster)
    try:
        _await_takeover(done, before, began, victim, cluster, watch)
    finally:
        _end(victim, cluster)
    if fault.kind != "kill":
        _await_end(victim, cluster, say)
    if last:
        victim.retired = True  # it has nothing left to do, and its start would slow down the others
    else:
        cluster.restart(victim)
    return done


def _victim(fault: Fault, wanted: int, cluster: Cluster) -> tuple[Member, list[str]]:
    """The worker to hit and its pipelines, once all pipelines run and enough workers are ready."""
    found: list[tuple[Member, list[str]]] = []

    def can_be_missed() -> bool:
        ready, pipelines = cluster.ready(), cluster.pipelines()
        held = {member.id: _held(member, pipelines) for member in ready}
        chosen = [each for number in fault.order for each in ready if each.number == number and held[each.id]]
        if len(ready) >= wanted and chosen and all(each["phase"] == "running" for each in pipelines.values()):
            found.append((chosen[0], held[chosen[0].id]))
        return bool(found)

    cluster.wait(can_be_missed, f"all pipelines and {wanted} workers to run", START_S)
    return found[0]


def _held(member: Member, pipelines: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, pipeline in pipelines.items() if pipeline["worker"] == member.id]


def _begin(kind: Kind, victim: Member, cluster: Cluster) -> None:
    if kind == "kill":
        cluster.kill(victim)
    elif kind == "freeze":
        cluster.freeze(victim)
    else:
        victim.proxy.cut()


def _end(victim: Member, cluster: Cluster) -> None:
    cluster.thaw(victim)
    victim.proxy.heal()


def _await_takeover(
    done: Round, before: dict[str, int], began: float, victim: Member, cluster: Cluster, watch: Watch
) -> None:
    """Wait until every pipeline has delivered on another worker, and end the fault when its time is up."""
    deadline = began + cluster.lease_s + LONGEST_TAKEOVER_S
    over = done.lasted_s is None
    while len(done.takeover_s) < len(before) or not over:
        if cluster.stopped():
            raise Interrupted
        now = time.time()
        if not over and done.lasted_s is not None and now >= began + done.lasted_s:
            over = True
            _end(victim, cluster)
        for pipeline, epoch in before.items():
            at = watch.taken_over_at(pipeline, epoch)
            if at is not None and pipeline not in done.takeover_s:
                done.takeover_s[pipeline] = round(at - began, 2)
        if now > deadline:
            done.stuck = sorted(before.keys() - done.takeover_s.keys())
            return
        time.sleep(POLL_S)


def _await_end(victim: Member, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Wait for a worker that has lost its lease to exit on its own."""
    deadline = time.monotonic() + END_S
    while not victim.ended and time.monotonic() < deadline:
        if cluster.stopped():
            raise Interrupted
        time.sleep(POLL_S)
    if not victim.ended:
        say(f"worker {victim.number} lost its lease and did not exit within {END_S:.0f} s: killing it")
        cluster.kill(victim)
