"""Copies of a flow's own files: another machine goes on with them, and an older worker adds none."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.base import DeliveryId
from penstock.engine.delivery.copies import Copies
from penstock.engine.delivery.ledger import Ledger, Span
from penstock.errors import Suspended
from penstock.processors.support.ticker import Clock
from penstock.spark.stored_files import StoredFiles
from tests.engine.faults import SCHEMA, Faulty, from_stream, numbers, wait_for
from tests.flows import NO_STREAMS, Streams, running

pytestmark = pytest.mark.slow

BEST_EFFORT = {"required": False, "retries": 0, "backoff_ms": 50}


class Machine:
    """A machine with a directory of its own on which a worker has the flow under an epoch."""

    def __init__(self, spark: SparkSession, root: Path, name: str, epoch: int) -> None:
        self.directory = root / name
        self.copies = Copies(StoredFiles(spark, str(root / "copies")), self.directory, epoch)
        self.copies.fetch()
        self.ledger = Ledger(self.directory, epoch)
        self.copies.claim(self.ledger)

    def miss(self, batch: int) -> None:
        """Commit a batch without the sink."""
        self.ledger.missed(DeliveryId("p", "sink", "life", batch), Span(batch, batch + 1), "stream", "s")
        self.copies.save()

    @property
    def count(self) -> int:
        """How many batches the sink has missed."""
        return sum(gap.batches for gap in self.ledger.standing("sink").gaps)


def names(root: Path) -> list[str]:
    return sorted(file.name for file in (root / "copies").iterdir() if not file.name.startswith("."))


def test_another_machine_goes_on_and_the_old_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    one = Machine(spark, tmp_path, "one", 1)
    one.miss(0)
    one.miss(1)
    two = Machine(spark, tmp_path, "two", 2)
    assert two.count == 2
    with pytest.raises(Suspended):
        one.miss(2)
    two.miss(2)
    assert two.count == 3
    with pytest.raises(Suspended, match="epoch 2 and not 1"):
        Machine(spark, tmp_path, "one", 1)
    back = Machine(spark, tmp_path, "one", 3)
    assert back.count == 3, "what the old one has missed after it lost the flow was never committed"


def test_an_old_worker_is_refused_after_its_number_is_free_again(spark: SparkSession, tmp_path: Path) -> None:
    one = Machine(spark, tmp_path, "one", 1)
    one.miss(0)
    two = Machine(spark, tmp_path, "two", 2)
    for batch in range(1, 6):
        two.miss(batch)
    assert names(tmp_path) == ["000000000007", "000000000008"], "only the newest are kept"
    with pytest.raises(Suspended):
        one.miss(1)
    assert Machine(spark, tmp_path, "three", 3).count == 6


def test_a_worker_that_takes_over_at_the_same_time_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The old worker commits a batch between the two steps of its successor: the latter must know of it."""
    one = Machine(spark, tmp_path, "one", 1)
    two = Copies(StoredFiles(spark, str(tmp_path / "copies")), tmp_path / "two", 2)
    two.fetch()
    one.miss(0)
    with pytest.raises(Suspended):
        two.claim(Ledger(tmp_path / "two", 2))
    assert Machine(spark, tmp_path, "two", 2).count == 1, "at its next attempt"


def test_the_same_machine_keeps_its_own_files(spark: SparkSession, tmp_path: Path) -> None:
    one = Machine(spark, tmp_path, "one", 1)
    one.miss(0)
    one.ledger.acked(DeliveryId("p", "other", "life", 1), Span(1, 2))
    again = Machine(spark, tmp_path, "one", 2)
    assert again.ledger.has_acked(DeliveryId("p", "other", "life", 1)), "which is newer than the copy"
    assert again.count == 1


def test_copies_are_made_of_changes_only(spark: SparkSession, tmp_path: Path) -> None:
    one = Machine(spark, tmp_path, "one", 1)
    first = names(tmp_path)
    one.ledger.acked(DeliveryId("p", "sink", "life", 0), Span(0, 1))
    one.copies.save()
    assert names(tmp_path) == first, "a batch is repeated under the same number"
    Clock(one.directory).saw("life", 0, {"at": 5}, 0)
    one.copies.save(only_missed=True)
    assert names(tmp_path) == first
    one.copies.save()
    assert names(tmp_path) != first
    two = Machine(spark, tmp_path, "two", 2)
    assert Clock(two.directory).read().latest == {"at": 5}


def test_missed_batches_are_delivered_by_another_machine(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    log = streams.make("in", schema=SCHEMA)
    flow = from_stream(tmp_path, streams, {"lake": {}, "mirror": BEST_EFFORT})
    flow.site = replace(flow.site, epoch=1, copies=str(tmp_path / "copies"))
    log.append(numbers(0, 30))
    with running(flow.keeper(spark, mirror=["fail"] * 100_000)):
        wait_for("the others", lambda: len(flow.ids("lake")) == 30)
        wait_for("a gap", lambda: sum(gap.batches for gap in flow.standing("mirror").gaps) == 3)
    shutil.rmtree(tmp_path / "state")
    flow.site = replace(flow.site, epoch=2)
    with running(flow.keeper(spark)):
        wait_for("catching up", lambda: len(flow.ids("mirror")) == 30)
        wait_for("rest", lambda: flow.standing("mirror").state == "in_sync")
    assert flow.ids("mirror") == list(range(30))
    assert flow.attempts("lake") == 3
    shutil.rmtree(tmp_path / "state")
    flow.site = replace(flow.site, epoch=3)
    log.append(numbers(30, 10))
    with running(flow.keeper(spark)):
        wait_for("the next batch", lambda: len(flow.ids("mirror")) >= 40)
    assert flow.ids("mirror") == list(range(40)), "none twice: what was delivered is no longer missed"


def test_files_of_missed_batches_are_copied(spark: SparkSession, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    flow = Faulty(
        tmp_path, {"lake": {}, "mirror": BEST_EFFORT}, replace(NO_STREAMS, epoch=1, copies=str(copies))
    )
    kept = flow.keeper(spark, mirror=["fail"] * 3)
    kept.start()
    kept.join(180)
    assert kept.state.outcome == "completed"
    assert [gap.kept for gap in flow.standing("mirror").gaps] == ["file"]
    assert len(list(copies.glob("behind-*.arrow"))) == 1
    shutil.rmtree(tmp_path / "state")
    flow.site = replace(flow.site, epoch=2)
    again = flow.keeper(spark)
    again.start()
    again.join(180)
    assert again.state.outcome == "completed"
    assert sorted(flow.ids("mirror")) == list(range(10))
    assert not list(copies.glob("behind-*"))
