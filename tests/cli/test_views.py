"""How documents of a server are shown."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cli.views import show_list, show_page

PIPELINE: dict[str, Any] = {
    "name": "orders",
    "id": "orders",
    "metadata": {"name": "orders"},
    "spec": {},
    "status": "active",
    "phase": "waiting",
    "queue_position": 7,
    "worker": "w",
    "error": None,
    "attempts": [],
    "ops": {},
    "revision": 1,
    "created_at": "2026-11-16T12:00:00Z",
    "updated_at": "2026-11-16T12:00:00Z",
}


@pytest.mark.parametrize(
    ("phase", "place", "shown"), [("waiting", 7, "waiting #7"), ("running", None, "running")]
)
def test_the_place_in_the_queue(
    capsys: pytest.CaptureFixture[str], phase: str, place: int | None, shown: str
) -> None:
    item = {**PIPELINE, "phase": phase, "queue_position": place}
    show_list("Pipeline", [item])
    show_list("Task", [item])
    assert capsys.readouterr().out.count(f"active  {shown}  ") == 2
    show_page("Pipeline", item)
    assert f"active ({shown})" in capsys.readouterr().out


def test_an_error_is_shown_until_a_batch_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "sink_failed", "message": "no disk", "at": "2026-11-16T12:00:00Z", "path": None}
    stalled = {**PIPELINE, "phase": "stalled", "queue_position": None, "failed_attempts": 4, "error": error}
    show_list("Pipeline", [stalled])
    show_page("Pipeline", stalled)
    out = capsys.readouterr().out
    assert out.count("no disk") == 2
    assert "active (stalled)" in out
    assert "4 failed since the last good batch" in out
    well = {**stalled, "phase": "running", "failed_attempts": 0, "error": {**error, "recovered": True}}
    show_list("Pipeline", [well])
    show_page("Pipeline", well)
    assert "no disk" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("goal", "shown"),
    [
        ({"met": True, "p99_ms": 180.2, "reason": None}, "99% of events within 180 ms, goal 200 ms met"),
        ({"met": False, "p99_ms": 1480.0, "reason": "too slow"}, "1,480 ms, goal 200 ms not met: too slow"),
        ({"met": None, "p99_ms": None, "reason": None}, "goal 200 ms, no events in the last seconds"),
        (None, ""),
    ],
)
def test_the_latency_goal(
    capsys: pytest.CaptureFixture[str], goal: dict[str, Any] | None, shown: str
) -> None:
    latency = goal and {"target_ms": 200, **goal}
    show_page("Pipeline", {**PIPELINE, "ops": {"input_events": 1, "batches": 1, "latency": latency}})
    out = capsys.readouterr().out
    assert shown in out
    assert ("latency" in out) == bool(goal)
