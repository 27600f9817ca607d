"""More pipelines than turns to start, on a real worker."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.api.kit import Api, pipeline

pytestmark = pytest.mark.slow

MANY, PATIENCE_S = 8, 400.0


def listed(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.get("/pipelines").json()["items"]
    return sorted(answer, key=lambda item: int(item["name"].removeprefix("small-")))


def test_all_of_them_run_in_the_end(live: Api) -> None:
    client = live.client
    for i in range(MANY):
        answer = client.post("/pipelines", json=pipeline(f"small-{i}", "active"))
        assert answer.status_code == 201, answer.text
    deadline = time.monotonic() + PATIENCE_S
    waited: set[str] = set()
    items = listed(client)
    while not all(item["phase"] == "running" for item in items):
        assert time.monotonic() < deadline, [(item["phase"], item["error"]) for item in items]
        first = [item["queue_position"] for item in items if not item["attempts"]]
        places = [place for place in first if place is not None]
        assert places == sorted(places), "in the order in which they were posted"
        waited |= {item["name"] for item in items if item["queue_position"] is not None}
        time.sleep(0.1)
        items = listed(client)
    assert len(waited) > 1
    assert {item["queue_position"] for item in items} == {None}
    failures = {attempt["code"] for item in items for attempt in item["attempts"]}
    assert failures <= {"starved"}, "waiting uses up no attempt; this machine may be too busy itself"
