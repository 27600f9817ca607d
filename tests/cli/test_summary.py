"""How a run tells what became of its events."""

from __future__ import annotations

import pytest

from penstock.cli.progress import Summary, show_summary
from penstock.control.fleet.lifecycle import State


def test_a_summary_tells_of_dead_letters(capsys: pytest.CaptureFixture[str]) -> None:
    ops = {"input_events": 4, "batches": 1, "dead_letters": 2}
    state = State(phase="idle", outcome="completed", ops=ops)
    show_summary(Summary.of("orders", state, 1.0, False, "orders.dead"))
    told = capsys.readouterr().err
    assert "completed orders: 4 events read in 1 batch" in told
    assert "2 events could not be processed and kept in the stream orders.dead" in told
