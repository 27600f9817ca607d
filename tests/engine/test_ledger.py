from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.connectors.base import DeliveryId
from penstock.engine.delivery.ledger import NOTES, Ledger, Span
from penstock.engine.delivery.sink_states import FILE, read_standings
from penstock.errors import Suspended

SINKS = ("a", "b")


def delivery(batch: int, sink: str = "a", lineage: str = "life") -> DeliveryId:
    return DeliveryId("flow", sink, lineage, batch)


def test_a_batch_that_is_repeated_knows_who_has_dealt_with_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.begin("life", 3) == set()
    ledger.acked(delivery(3), Span(30, 40))
    ledger.settled("life", 3)
    assert Ledger(tmp_path).begin("life", 3) == {"a", NOTES}
    assert ledger.begin("other life", 3) == set()
    assert ledger.begin("life", 4) == set()
    assert ledger.begin("life", 3) == set(), "it was committed, so nothing has to be known of it"


def test_an_acknowledgement_that_comes_late_fills_the_gap(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.missed(delivery(1), Span(10, 20), "file", "key", file="x", size=5)
    assert ledger.kept("a") == ({"x"}, 5)
    assert ledger.acked(delivery(1), Span(10, 20)) == "x"
    assert ledger.next_gap("a", "flow") is None
    assert not ledger.missed(delivery(1), Span(10, 20), "stream", "key"), "it has it"


def test_gaps_are_told_as_ranges_and_losses_apart(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for batch in (1, 2, 3, 5):
        ledger.missed(delivery(batch), Span(batch * 10, batch * 10 + 10), "stream", "key")
    gap = ledger.next_gap("a", "flow")
    assert gap is not None
    assert gap.delivery == delivery(1)
    ledger.lose(gap, "gone", up_to=14)
    gap = ledger.next_gap("a", "flow")
    assert gap is not None
    ledger.lose(gap, "gone")
    ledger.missed(delivery(6), Span(60, 70), "lost", "key", events=3, why="full")
    ranges = read_standings(tmp_path, ["a"])["a"].gaps
    assert [(r.first, r.next, r.batches, r.events, r.kept, r.why) for r in ranges] == [
        (20, 40, 2, None, "stream", None),
        (50, 60, 1, None, "stream", None),
        (10, 20, 1, 10, "lost", "gone"),
        (60, 70, 1, 3, "lost", "full"),
    ]
    assert read_standings(tmp_path, ["a"])["a"].cursor == 20


def test_sinks_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for sink in SINKS:
        ledger.missed(delivery(1, sink), Span(), "file", "key", file=sink)
    ledger.retain(["b"])
    assert ledger.next_gap("a", "flow") is None
    assert ledger.next_gap("b", "flow") is not None


def test_a_damaged_ledger_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 1000)
    ledger = Ledger(tmp_path)
    ledger.acked(delivery(0), Span())
    assert ledger.begin("life", 0) == {"a"}
    assert len(list(tmp_path.glob(f"{FILE}.damaged-*"))) == 1


def test_a_sink_fails_until_it_takes_a_batch(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    def state() -> str:
        return read_standings(tmp_path, ["a"])["a"].state

    for _ in range(4):
        ledger.failed("a", "connection refused")
    assert state() == "failing", "four failures and no acknowledgement"
    ledger.acked(delivery(0), Span())
    assert state() == "in_sync"
    ledger.failed("a", "connection refused")
    ledger.missed(delivery(1), Span(), "file", "key", file="x")
    assert state() == "behind"
    ledger.failed("a", "connection refused")
    assert state() == "behind", "it has missed batches"


def test_there_is_nothing_to_read_before_the_first_run(tmp_path: Path) -> None:
    assert read_standings(tmp_path, ["a"])["a"].state == "in_sync"
    sqlite3.connect(tmp_path / FILE).close()
    assert read_standings(tmp_path, ["a"])["a"].gaps == ()


class LedgerModel(RuleBasedStateMachine):
    """The ledger, opened again and again, against what it is to remember."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.opened: list[Ledger] = []
        self.reopen()
        self.batch = 0
        self.acks: set[tuple[int, str]] = set()
        self.gaps: dict[str, dict[int, Span]] = {sink: {} for sink in SINKS}
        self.lost: dict[str, int] = dict.fromkeys(SINKS, 0)
        self.failures: dict[str, int] = dict.fromkeys(SINKS, 0)

    def span(self, batch: int) -> Span:
        return Span(batch * 10, batch * 10 + 10)

    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger(self.directory)  # the other connection is left as a kill would leave it
        self.opened.append(self.ledger)

    @rule()
    def commit(self) -> None:
        self.batch += 1
        self.acks = {(batch, sink) for batch, sink in self.acks if batch >= self.batch}
        assert self.ledger.begin("life", self.batch) == set()

    @rule(sink=st.sampled_from(SINKS))
    def repeat(self, sink: str) -> None:
        known = {who for batch, who in self.acks if batch == self.batch}
        assert self.ledger.begin("life", self.batch) == known
        missing = {who for who in SINKS if self.batch in self.gaps[who]}
        assert self.ledger.missing("life", self.batch) >= missing

    @rule(sink=st.sampled_from(SINKS))
    def acknowledge(self, sink: str) -> None:
        self.ledger.acked(delivery(self.batch, sink), self.span(self.batch))
        self.acks.add((self.batch, sink))
        self.gaps[sink].pop(self.batch, None)

    @rule(sink=st.sampled_from(SINKS))
    def miss(self, sink: str) -> None:
        taken = self.ledger.missed(delivery(self.batch, sink), self.span(self.batch), "stream", "key")
        assert taken == ((self.batch, sink) not in self.acks)
        if taken:
            self.gaps[sink].setdefault(self.batch, self.span(self.batch))

    @rule(sink=st.sampled_from(SINKS), fate=st.sampled_from(["fill", "lose", "part"]))
    def catch_up(self, sink: str, fate: str) -> None:
        gap = self.ledger.next_gap(sink, "flow")
        oldest = min(self.gaps[sink], default=None)
        assert (gap is None) == (oldest is None)
        if gap is None or oldest is None:
            return
        assert (gap.delivery, gap.span) == (delivery(oldest, sink), self.gaps[sink][oldest])
        assert gap.span.first is not None
        if fate == "part" and self.gaps[sink][oldest] == self.span(oldest):
            self.ledger.lose(gap, "gone", up_to=gap.span.first + 1)
            self.gaps[sink][oldest] = Span(gap.span.first + 1, gap.span.next)
            self.lost[sink] += 1
            return
        del self.gaps[sink][oldest]
        if fate == "fill":
            self.ledger.acked(gap.delivery, gap.span)
            if oldest == self.batch:
                self.acks.add((oldest, sink))
        else:
            self.ledger.lose(gap, "gone")
            assert gap.span.next is not None
            self.lost[sink] += gap.span.next - gap.span.first

    @rule(sink=st.sampled_from(SINKS))
    def fail(self, sink: str) -> None:
        self.ledger.failed(sink, "no")
        self.failures[sink] += 1

    def teardown(self) -> None:
        for ledger in self.opened:
            ledger.close()
        shutil.rmtree(self.directory)

    @invariant()
    def agrees(self) -> None:
        found: dict[str, Any] = read_standings(self.directory, SINKS)
        for sink in SINKS:
            ranges = found[sink].gaps
            open_ = [r for r in ranges if r.kept != "lost"]
            assert sum(r.batches for r in open_) == len(self.gaps[sink])
            assert sum(r.events for r in ranges if r.kept == "lost") == self.lost[sink]
            assert found[sink].failures == self.failures[sink]
            if self.gaps[sink]:
                assert found[sink].cursor == self.gaps[sink][min(self.gaps[sink])].first


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_a_ledger_that_another_epoch_has_opened_refuses_every_write(tmp_path: Path) -> None:
    old = Ledger(tmp_path, 3)
    old.begin("life", 1)
    old.failed("a", "why")
    new = Ledger(tmp_path, 4)
    before = new.standing("a")
    writes = [
        lambda: old.begin("life", 2),
        lambda: old.settled("life", 1),
        lambda: old.acked(DeliveryId("p", "a", "life", 1), Span(0, 5)),
        lambda: old.failed("a", "again"),
        lambda: old.stands("a", "behind"),
        lambda: old.retain(["b"]),
        lambda: Ledger(tmp_path, 3),
    ]
    for write in writes:
        with pytest.raises(Suspended, match="epoch 4 and not 3"):
            write()
    assert new.standing("a") == before
    new.failed("a", "the newest may")
    assert new.standing("a").last_error == "the newest may"
