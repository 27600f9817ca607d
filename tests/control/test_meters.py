from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.monitor.meters import Growth
from penstock.engine.runtime.meter import Meter


def test_a_rate_is_the_mean_of_the_last_seconds() -> None:
    meter = Meter(window_s=10)
    assert meter.mark(0, 100) is None  # nothing to compare it with
    assert meter.mark(2, 300) == 100
    for second in range(4, 20, 2):
        rate = meter.mark(second, 300)
    assert rate == 0  # what was counted before the window is forgotten


def test_a_batch_counts_as_long_as_the_window() -> None:
    meter = Meter(window_s=10)
    for second in range(0, 12, 2):
        meter.mark(second, 0)
    assert meter.mark(12, 500) == 50
    assert meter.mark(14, 500) == 50


def test_a_counter_that_begins_anew_is_no_negative_rate() -> None:
    meter = Meter()
    meter.mark(0, 1000)
    meter.mark(2, 2000)
    assert meter.mark(4, 10) is None
    assert meter.mark(6, 30) == 10


def test_a_rest_is_no_part_of_a_rate() -> None:
    meter = Meter()
    meter.mark(0, 0)
    meter.rest()
    assert meter.mark(100, 5000) is None
    assert meter.mark(101, 5010) == 10


@given(st.lists(st.tuples(st.floats(0.1, 5), st.integers(-1000, 1000)), min_size=1, max_size=60))
def test_a_rate_is_never_negative_and_never_more_than_was_counted(steps: list[tuple[float, int]]) -> None:
    meter, at, value, fastest = Meter(), 0.0, 0, 0.0
    meter.mark(at, value)
    for pause, change in steps:
        at, value = at + pause, max(0, value + change)
        fastest = max(fastest, change / pause)
        rate = meter.mark(at, value)
        assert rate is None or 0 <= rate <= fastest + 1e-9


def test_growth_forgets_what_is_long_ago() -> None:
    growth = Growth(window_s=600)
    growth.mark(0, 50)
    assert (growth.total, growth.since) == (0, None)  # nobody knows when these were counted
    growth.mark(10, 53)
    growth.mark(300, 60)
    assert (growth.total, growth.since) == (10, 10)
    growth.mark(700, 60)
    assert (growth.total, growth.since) == (7, 300)
    growth.mark(1000, 60)
    assert growth.since is None


def test_a_counter_that_is_known_to_be_new_has_grown_from_zero() -> None:
    growth = Growth(baseline=0)
    growth.mark(5, 3)
    assert (growth.total, growth.since) == (3, 5)


@pytest.mark.parametrize("after", [0, 4])
def test_a_counter_that_begins_anew_has_not_grown(after: int) -> None:
    growth = Growth()
    growth.mark(0, 50)
    growth.mark(1, after)
    assert growth.since is None
