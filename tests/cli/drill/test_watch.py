"""Takeovers as the ledgers of pipelines show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.drill.watch import Watch
from penstock.connectors.base import DeliveryId
from penstock.engine.delivery.ledger import Ledger, Span
from tests.cli.commands import wait_for


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path, ["p"])


def test_a_takeover_is_the_first_batch_of_a_later_epoch(tmp_path: Path, watch: Watch) -> None:
    directory = tmp_path / "flows" / "p" / "12345678"
    first = Ledger(directory, 1)
    watch.start()
    try:
        first.acked(DeliveryId("p", "out", "life", 0), Span(0, 1))
        wait_for("the first batch", lambda: watch.seen("p").acked_at, 10)
        assert watch.taken_over_at("p", 1) is None, "that is the epoch of before"
        second = Ledger(directory, 2)
        wait_for("the second epoch", lambda: watch.seen("p").epoch == 2, 10)
        assert watch.taken_over_at("p", 1) is None, "it has delivered nothing"
        second.acked(DeliveryId("p", "out", "life", 1), Span(1, 2))
        assert wait_for("the takeover", lambda: watch.taken_over_at("p", 1), 10) > watch.seen("p").since - 1
    finally:
        watch.stop()
    assert watch.stepped_back == []


def test_an_earlier_epoch_after_a_later_one_is_noted(watch: Watch) -> None:
    watch.note("p", 2, 10.0, 10.0)
    watch.note("p", 1, 11.0, 11.0)
    assert watch.stepped_back == ["p: epoch 1 wrote after epoch 2"]
    assert watch.seen("p").epoch == 2
