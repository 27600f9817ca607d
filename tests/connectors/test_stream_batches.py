from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.frames.faults import Fault
from penstock.frames.streams.batches import Batch, Batches, Cutter, Limits, Run, Transactions
from penstock.streams.log import Log
from tests.streams.kit import events, make_stream, opened

HOUR_MS = 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with opened(make_stream(tmp_path / "s")) as log:
        yield log


def limits(**fields: Any) -> Limits:
    generous = {"max_events": 1000, "max_bytes": 10**9, "max_ms": HOUR_MS, "max_inflight": 4}
    return Limits(**{"respect_source_tx": True, **generous, **fields})


def ends(batches: list[Batch]) -> list[int]:
    return [batch.next for batch in batches]


def test_nothing_is_there_until_a_threshold_is_met(log: Log) -> None:
    log.append(events(9))
    plan = Batches(log, limits(max_events=10), "skip")
    assert plan.await_end(0, 0.05) == 0
    log.append(events(1))
    assert plan.await_end(0, 0.05) == 10


def test_by_bytes(log: Log) -> None:
    first = events(3, size=1000)
    log.append(first)
    plan = Batches(log, limits(max_bytes=2 * first.nbytes), "skip")
    assert plan.await_end(0, 0.05) == 0
    log.append(first)
    log.append(first)
    assert plan.await_end(0, 0.05) == 6


def test_a_micro_batch_of_large_batches_holds_fewer(log: Log) -> None:
    one = events(10, size=1000)
    for _ in range(6):
        log.append(one)
    few = limits(max_events=10, max_inflight=6, max_inflight_bytes=2 * one.nbytes)
    assert Batches(log, few, "skip").await_end(0, 0.05) == 20
    assert Batches(log, limits(max_events=10, max_inflight=6), "skip").await_end(0, 0.05) == 60


def test_by_the_age_of_the_oldest_event(log: Log) -> None:
    log.append(events(1))
    plan = Batches(log, limits(max_ms=300), "skip")
    assert plan.await_end(0, 0.01) == 0
    log.append(events(1))
    began = time.monotonic()
    assert plan.await_end(0, 10) == 2
    assert time.monotonic() - began < 5


def test_what_came_long_ago_does_not_wait(log: Log) -> None:
    log.append(events(1))
    time.sleep(0.1)
    assert Batches(log, limits(max_ms=100), "skip").await_end(0, 0.0) == 1


def test_a_poll_waits_for_what_comes_but_not_for_ever(log: Log) -> None:
    plan = Batches(log, limits(max_ms=0), "skip")
    began = time.monotonic()
    assert plan.await_end(0, 0.2) == 0
    assert 0.2 <= time.monotonic() - began < 5


def test_a_micro_batch_holds_so_many_batches_and_no_more(log: Log) -> None:
    log.append(events(95))
    plan = Batches(log, limits(max_events=10, max_inflight=3, max_ms=0), "skip")
    assert plan.await_end(0, 0.0) == 30
    assert ends(plan.between(0, 30)) == [10, 20, 30]
    assert plan.await_end(30, 0.0) == 60
    assert plan.await_end(60, 0.0) == 90
    assert plan.await_end(90, 0.0) == 95
    assert ends(plan.between(90, 95)) == [95]


def test_a_range_that_was_planned_before_a_restart_is_cut_again(log: Log) -> None:
    log.append(events(25))
    assert ends(Batches(log, limits(max_events=10, max_inflight=1), "skip").between(3, 25)) == [13, 23, 25]


def test_a_transaction_is_kept_whole(log: Log) -> None:
    log.append(events(8))
    log.append(events(5), tx=[(0, 5, "a", True)])  # 8 to 13
    log.append(events(20))
    plan = Batches(log, limits(max_events=10, max_ms=0), "skip")
    assert plan.await_end(0, 0.0) == 33
    assert ends(plan.between(0, 33)) == [13, 23, 33]
    loose = Batches(log, limits(max_events=10, max_ms=0, respect_source_tx=False), "skip")
    assert ends(loose.between(0, 33)) == [10, 20, 30, 33]


def test_an_open_transaction_is_held_back_with_all_that_follows(log: Log) -> None:
    log.append(events(4))
    log.append(events(2), tx=[(0, 2, "a", False)])
    log.append(events(50))
    plan = Batches(log, limits(max_events=10, max_ms=0), "skip")
    assert plan.await_end(0, 0.0) == 4
    began = time.monotonic()
    assert plan.await_end(4, 0.1) == 4
    assert time.monotonic() - began >= 0.1, "a poll for what is held back may not spin"
    log.append(events(1), tx=[(0, 1, "a", True)])
    assert plan.await_end(4, 1.0) == 57
    assert ends(plan.between(4, 57)) == [57]


def test_a_transaction_over_several_frames_of_one_append(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "t", wal={"batch": {"max_events": 10}})
    with opened(directory) as log:
        log.append(events(35), tx=[(0, 35, "a", True)])
        log.append(events(20))
        plan = Batches(log, limits(max_events=10, max_inflight=1), "skip")
        assert plan.await_end(0, 0.0) == 35


@pytest.mark.parametrize("closed", [True, False])
def test_a_transaction_that_is_too_large_fails_with_its_own_error(log: Log, closed: bool) -> None:
    one = events(10)
    log.append(one)
    log.append(events(20), tx=[(0, 20, "a", closed)])
    sizes = {"max_events": 10, "max_ms": 0, "max_bytes": one.nbytes}
    plan = Batches(log, limits(**sizes, max_tx_bytes=one.nbytes * 1.5), "skip")
    with pytest.raises(Fault) as caught:
        plan.await_end(0, 0.0)
    assert caught.value.problem.code == "transaction_too_large"
    assert "from offset 10 on" in caught.value.problem.message
    loose = limits(**sizes, max_tx_bytes=one.nbytes * 1.5, respect_source_tx=False)
    assert Batches(log, loose, "skip").await_end(0, 0.0) == 30
    enough = Batches(log, limits(**sizes, max_tx_bytes=one.nbytes * 3), "skip")
    assert enough.await_end(0, 0.0) == (30 if closed else 10)


@pytest.mark.parametrize("ended", [True, False])
def test_thousands_of_transactions_overlap(log: Log, ended: bool) -> None:
    many = 5_000
    if ended:  # each reaches into the next one
        log.append(events(many + 1), tx=[(i, i + 2, str(i), True) for i in range(many)])
    else:  # all are open at once, and end in the order in which they began
        log.append(events(many), tx=[(i, i + 1, str(i), False) for i in range(many)])
        log.append(events(many), tx=[(i, i + 1, str(i), True) for i in range(many)])
    log.append(events(10))
    plan = Batches(log, limits(max_events=10, max_ms=0), "skip")
    whole = many + 1 if ended else 2 * many
    assert plan.await_end(0, 0.0) == whole + 10
    assert ends(plan.between(0, whole + 10)) == [whole, whole + 10]


def test_a_transaction_that_never_ends_is_given_up_and_told_of_once(log: Log) -> None:
    log.append(events(4))
    log.append(events(2), tx=[(0, 2, "a", False)])
    log.append(events(50))
    one = events(10).nbytes
    short = limits(max_events=10, max_ms=0, max_tx_ms=400)
    plan = Batches(log, short, "skip")
    assert plan.await_end(0, 0.0) == 4
    assert plan.await_end(4, 60) == 44, "four batches are a micro-batch, once the transaction is given up"
    assert (plan.unended(44), plan.unended(44)) == ({"a": 4}, {})
    assert plan.await_end(44, 0.0) == 56
    log.append(events(3), tx=[(0, 3, "a", True)])
    assert plan.await_end(56, 0.0) == 59, "the rest of it is a transaction of its own"
    tight = limits(max_events=10, max_tx_bytes=one * 1.5, max_tx_ms=400)
    again = Batches(log, tight, "skip")
    assert ends(again.between(4, 44)) == [14, 24, 34, 44], "a restart does not wait for it either"


def test_a_transaction_that_never_ends_is_given_up_however_much_follows(log: Log) -> None:
    log.append(events(2), tx=[(0, 2, "a", False)])
    log.append(events(50))
    small = {"max_events": 10, "max_ms": 0, "max_tx_bytes": 1}
    with pytest.raises(Fault, match="transaction_too_large"):
        Batches(log, limits(**small), "skip").await_end(0, 0.0)
    plan = Batches(log, limits(**small, max_tx_ms=0), "skip")
    assert (plan.await_end(0, 0.0), plan.unended(40)) == (40, {"a": 0})


def test_a_transaction_whose_end_has_been_appended_is_never_given_up(log: Log) -> None:
    log.append(events(2), tx=[(0, 2, "a", False)])
    time.sleep(0.05)
    log.append(events(30))
    log.append(events(2), tx=[(0, 2, "a", True)])
    plan = Batches(log, limits(max_events=10, max_ms=0, max_tx_ms=1), "skip")
    assert (plan.await_end(0, 0.0), plan.unended(34)) == (34, {})


class Model:
    """Transactions as plain intervals, asked offset by offset."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.ended: list[tuple[int, int]] = []

    def note(self, first: int, next: int, id: str, closed: bool) -> None:
        begin = min(self.open.pop(id, first), first)
        if closed:
            self.ended.append((begin, next))
        else:
            self.open[id] = begin

    def may_end(self, offset: int) -> bool:
        inside = any(begin < offset < end for begin, end in self.ended)
        return not inside and not any(begin < offset for begin in self.open.values())

    def after(self, offset: int) -> float:
        last = max([offset, *(end for _, end in self.ended)])
        return next((float(at) for at in range(offset, last + 1) if self.may_end(at)), math.inf)

    def before(self, offset: int) -> int:
        return next(at for at in range(offset, -1, -1) if self.may_end(at))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 15), st.sampled_from("abcdef"), st.booleans()),
        max_size=20,
    ),
    st.integers(0, 45),
)
def test_transactions_agree_with_a_plain_model(marks: list[tuple[int, int, str, bool]], below: int) -> None:
    found, model = Transactions(), Model()
    for first, count, id, closed in marks:
        found.note(first, first + count, id, closed)
        model.note(first, first + count, id, closed)
    for offset in range(60):
        assert found.after(offset) == model.after(offset)
        assert found.before(offset) == model.before(offset)
    given_up = {id: begin for id, begin in model.open.items() if begin < below}
    assert found.give_up(below) == given_up
    model.open = {id: begin for id, begin in model.open.items() if id not in given_up}
    found.forget(below)
    for offset in range(below, 60):
        assert found.after(offset) == model.after(offset)


def test_evicted_events_are_a_counted_gap(tmp_path: Path) -> None:
    directory = make_stream(tmp_path / "t", wal={"max_segments": 2, "segment_bytes": 300})
    with opened(directory) as log:
        for i in range(10):
            log.append(events(10, i * 10))
        first = log.bounds().first
        assert first > 0
        plan = Batches(log, limits(max_events=1000, max_ms=0), "skip")
        assert plan.await_end(0, 0.0) == 100
        assert plan.between(0, 100) == [Batch(0, 100, first)]
        with pytest.raises(Fault, match=f"offsets 0 to {first - 1} of the stream"):
            Batches(log, limits(), "fail").await_end(0, 0.0)


def test_an_offset_in_the_future_waits_for_its_event(log: Log) -> None:
    plan = Batches(log, limits(max_ms=0), "skip")
    log.append(events(5))
    assert plan.await_end(7, 0.0) == 7
    log.append(events(5))
    assert plan.await_end(7, 0.0) == 10


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 500)), max_size=20),
    st.integers(1, 40),
    st.integers(1, 2000),
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=5),
)
def test_batches_cover_everything_and_split_no_transaction(
    sizes: list[tuple[int, int]], max_events: int, max_bytes: int, marks: list[tuple[int, int]]
) -> None:
    transactions = Transactions()
    total = sum(count for count, _ in sizes)
    whole = [(a, min(a + n, total)) for a, n in marks if a < total]
    for i, (a, b) in enumerate(whole):
        transactions.note(a, b, str(i), True)
    cutter = Cutter(limits(max_events=max_events, max_bytes=max_bytes), transactions, 0)
    at = 0
    for count, size in sizes:
        cutter.add(Run(at, at + count, 1, float(size)))
        at += count
    cutter.finish(total)
    firsts, nexts = [b.first for b in cutter.batches], ends(cutter.batches)
    assert firsts == [0, *nexts[:-1]] if nexts else total == 0
    assert not nexts or nexts[-1] == total
    for end in nexts[:-1]:
        assert not any(a < end < b for a, b in whole)
    if not whole:
        assert all(b.next - b.first <= max_events for b in cutter.batches)
