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
