from __future__ import annotations

import pytest

from penstock.engine.runtime import counters as module
from penstock.engine.runtime.counters import Counters


def test_the_rate_is_over_seconds_not_over_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """25 events every five seconds, which take 600 ms: 5 per second, though Spark says 41."""
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    counters = Counters({"out": "exactly-once"})
    seen = []
    for second in range(30):
        now = 100.0 + second
        if second % 5 == 0:
            source = {"numInputRows": 25, "inputRowsPerSecond": 5.0, "processedRowsPerSecond": 41.6}
            progress = {"batchId": second, "timestamp": "2026-01-01T00:00:00.000Z", "sources": [source]}
            counters.progressed({**progress, "durationMs": {"addBatch": 600}})
        seen.append(counters.snapshot()["events_per_second"])
    assert all(2.5 <= rate <= 7.5 for rate in seen[10:])
    for second in range(30, 45):
        now = 100.0 + second
        seen.append(counters.snapshot()["events_per_second"])
    assert seen[-1] == 0.0
