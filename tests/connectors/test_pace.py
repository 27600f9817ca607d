"""The pace under a latency goal, against a model of the queue in plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.frames.streams.batch_costs import Costs
from penstock.frames.streams.pace import MARGIN, Choice, Pace

Times = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Machine:
    """The costs of micro-batches, in seconds; times vary by `noise` in both directions."""

    fixed: float
    each: float
    noise: float = 0.1
    cores: int = 1
    wobble: float = 0.0
    """For some seconds everything takes longer by this part, then less."""

    def seconds(self, events: int, tasks: int, now: float, chance: np.random.Generator) -> float:
        """The time of a micro-batch."""
        phase = 1 + self.wobble * math.sin(now * 2)
        took = self.fixed + self.each * events / tasks
        return float(took * phase * chance.uniform(1 - self.noise, 1 + self.noise))

    def capacity(self, target: float) -> float:
        """Events per second of micro-batches that take half of the goal."""
        return (1 - 2 * self.fixed / (MARGIN * target)) * self.cores / self.each


@dataclass
class Outcome:
    pace: Pace
    latencies: Times
    sizes: list[int]
    lingers: list[float]
    seconds: float
    caps: list[int | None]
    most_tasks: int


def simulated(
    machine: Machine, target: float, arrivals: Times, warm_s: float, end_s: float = math.inf
) -> Outcome:
    """The outcome for events that arrive at these times; those before `warm_s` do not count."""
    chance = np.random.default_rng(7)
    pace, now, start = Pace(target, machine.cores), 0.0, 0
    latencies: list[Times] = []
    sizes, lingers, caps, most_tasks = [], [], [], 0
    while start < len(arrivals) and now < end_s:
        arrived = int(np.searchsorted(arrivals, now, "right"))
        pace.asked(now, start, arrived)
        choice = pace.choose(max(0.0, now - arrivals[start]))
        begin = max(now, arrivals[start] + choice.linger_s)
        if choice.most is not None and start + choice.most <= len(arrivals):
            begin = max(now, min(begin, arrivals[start + choice.most - 1]))
        end = int(np.searchsorted(arrivals, begin, "right"))
        end = end if choice.most is None else min(end, start + choice.most)
        tasks = pace.planned(begin, arrivals[start], end - start)
        now = begin + machine.seconds(end - start, tasks, begin, chance)
        if begin >= warm_s:
            most_tasks = max(most_tasks, tasks)
            caps.append(choice.most)
            latencies.append(now - arrivals[start:end])
            sizes.append(end - start)
            lingers.append(choice.linger_s)
        start = end
    return Outcome(pace, np.concatenate(latencies), sizes, lingers, now - warm_s, caps, most_tasks)


def poisson(rate: float, seconds: float) -> Times:
    gaps = np.random.default_rng(11).exponential(1 / rate, int(rate * seconds))
    return np.cumsum(gaps)


@settings(max_examples=60, deadline=None)
@given(
    target=st.floats(0.05, 5.0),
    fixed=st.floats(0.02, 0.33),
    each=st.floats(0.0005, 0.005),
    load=st.floats(0.02, 0.8),
    unseen=st.floats(0.0, 0.15),
)
def test_the_goal_is_kept_at_any_rate_below_the_capacity(
    target: float, fixed: float, each: float, load: float, unseen: float
) -> None:
    machine = Machine(fixed * target, each * target)
    arrivals = poisson(load * machine.capacity(target), 120 * target)
    found = simulated(machine, target, arrivals, warm_s=40 * target)
    # A sender sees more than the planner: the request before the append, and the way to the reader.
    assert np.quantile(found.latencies, 0.99) + unseen * target <= target


@settings(max_examples=40, deadline=None)
@given(target=st.floats(0.1, 5.0), fixed=st.floats(0.02, 0.33), expected=st.floats(0.05, 0.7))
def test_an_event_that_expects_no_other_does_not_linger(target: float, fixed: float, expected: float) -> None:
    machine = Machine(fixed * target, 0.002 * target)
    arrivals = np.arange(1, 120) * target / expected  # further apart than any event may linger
    found = simulated(machine, target, arrivals, warm_s=20 * target)
    assert max(found.latencies) <= 1.2 * (machine.fixed + machine.each), "its own micro-batch, and no more"


@settings(max_examples=40, deadline=None)
@given(target=st.floats(0.05, 5.0), fixed=st.floats(0.02, 0.33), load=st.floats(0.02, 0.2))
def test_at_low_load_there_are_few_micro_batches(target: float, fixed: float, load: float) -> None:
    machine = Machine(fixed * target, 0.002 * target)
    arrivals = poisson(load * machine.capacity(target), 120 * target)
    found = simulated(machine, target, arrivals, warm_s=40 * target)
    # An event may wait for all of the goal but its own micro-batch: so many micro-batches cannot be avoided.
    fewest = found.seconds / (target - machine.fixed + 1 / (load * machine.capacity(target)))
    # It would be fewer if an event also waited where no other is expected, and if the whole goal were used.
    assert len(found.sizes) <= 2.5 * fewest


def test_events_that_expect_others_linger() -> None:
    found = simulated(Machine(fixed=0.05, each=0.00001), 0.5, poisson(50, 60), warm_s=20)
    assert min(found.lingers) > 0.2
    assert np.mean(found.sizes) > 10


def test_a_burst_is_cut_once_the_cost_of_an_event_is_known() -> None:
    machine = Machine(fixed=0.02, each=0.0005, noise=0.0)
    bursts = np.repeat([15.0, 17.0], 400)  # as one micro-batch it would hold up all that follow for 220 ms
    found = simulated(machine, 0.2, np.sort(np.concatenate([poisson(200, 20), bursts])), warm_s=5)
    assert len([size for size in found.sizes if size > 300]) == 1, "the first one is not cut"


def test_a_backlog_is_read_in_the_largest_micro_batches() -> None:
    machine = Machine(fixed=0.05, each=0.0001)
    backlog = np.full(50_000, -60.0)
    found = simulated(machine, 0.2, np.concatenate([backlog, poisson(500, 60)]), warm_s=0)
    assert found.sizes[0] == 50_000
    later = found.latencies[50_000 + 10_000 :]
    assert np.quantile(later, 0.99) <= 0.2, "and then the goal is kept again"


def test_more_events_than_can_be_processed_are_not_capped() -> None:
    found = simulated(Machine(fixed=0.05, each=0.0001), 0.2, poisson(12_000, 20), warm_s=5, end_s=15)
    assert found.pace.rate > found.pace.processed
    assert found.pace.processed == pytest.approx(10_000, rel=0.1)
    assert found.pace.choose(1.0) == Choice(0.0, None)
    assert found.sizes[-2] > found.sizes[0], "the queue grows, and micro-batches with it"


@pytest.mark.parametrize("rate", [100.0, 1_000.0, 5_000.0])
def test_a_machine_that_is_slow_at_times_does_not_make_events_look_expensive(rate: float) -> None:
    machine = Machine(fixed=0.08, each=0.000001, noise=0.2, wobble=0.5)
    found = simulated(machine, 0.2, poisson(rate, 40), warm_s=10)
    costs = found.pace.costs
    assert costs.per_event * costs.events < 0.5 * costs.seconds
    assert found.most_tasks == 1
    assert all(most is None or most >= 2 * rate * 0.1 for most in found.caps), "no queue by a cap"


def test_work_is_spread_over_the_cores_when_there_is_enough() -> None:
    found = simulated(Machine(0.02, 0.001, cores=4), 1.0, poisson(1500, 60), warm_s=20)
    assert found.pace.tasks(1) == 1
    assert found.most_tasks == 4
    assert np.quantile(found.latencies, 0.99) <= 1.0, "one core could not even keep up"


def test_the_costs_of_micro_batches() -> None:
    costs = Costs()
    for i in range(40):
        events = 10 if i % 2 else 5_000
        costs.add(events, 0.03 + 0.0002 * events)
    assert 0.00015 < costs.per_event <= 0.0002, "rather too low: sizes may differ for another reason"
    assert costs.quickest == pytest.approx(0.032, rel=0.02)
    for _ in range(500):
        costs.add(150, 0.06)
    assert costs.per_event < 0.00001, "nothing is known of it when all are alike"
    assert costs.fixed == pytest.approx(0.06, rel=0.05)


def test_slow_micro_batches_after_the_start_are_forgotten() -> None:
    pace = Pace(0.2, 1)
    now = 0.0
    for took in (5.0, 0.5, *[0.06] * 60):
        pace.asked(now, 0, int(now * 1000))
        pace.choose(0.0)
        pace.planned(now, now, 10)
        now += took
    pace.asked(now, 0, int(now * 1000))
    assert pace.choose(0.0).linger_s == pytest.approx(MARGIN * 0.2 - 0.06, abs=0.03)


@pytest.mark.parametrize("load", [0.3, 2.0])
def test_the_capacity_is_told_from_micro_batches_of_many_sizes(load: float) -> None:
    machine = Machine(fixed=0.03, each=0.0001, noise=0.0)
    rate = machine.capacity(0.2)
    arrivals = np.sort(np.concatenate([poisson(50, 10), 10 + poisson(load * rate, 5)]))
    found = simulated(machine, 0.2, arrivals, warm_s=1, end_s=13)
    assert 0.5 * rate < found.pace.capacity < 2 * rate


def test_the_rate_of_arrival() -> None:
    pace = Pace(0.2, 1)
    for i in range(100):
        pace.asked(i * 0.1, 0, i * 50)
    assert pace.rate == pytest.approx(500, rel=0.02)
    pace.asked(60.0, 4950, 4950)
    assert pace.rate < 1
    assert pace.waiting == 0
