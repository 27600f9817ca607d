"""The logs of all flows are searched, and the batches of one are listed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.control.fleet.progress import flow_directory
from penstock.control.monitor import log_search
from penstock.engine.runtime.batch_log import MOST_BYTES, BatchLine, write_batches
from tests.api.kit import Api, codes, pipeline
from tests.api.test_flow_logs import log_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def found(api: Api, **params: Any) -> list[tuple[str, str]]:
    answer = api.client.get("/logs", params=params)
    assert answer.status_code == 200, answer.text
    assert answer.json()["complete"]
    return [(line["key"], line["message"]) for line in answer.json()["lines"]]


@pytest.fixture
def logs(api: Api) -> Api:
    for name in ("orders", "visits"):
        api.client.post("/pipelines", json=pipeline(name))
    log_of(api, "orders").info("started", revision=3)
    log_of(api, "visits").info("Started")
    log_of(api, "orders").error("failed: no disk", sink="lake")
    return api


def test_lines_of_all_flows_are_found_by_text_level_and_flow(logs: Api) -> None:
    failed, started = ("Pipeline/orders", "failed: no disk"), ("Pipeline/orders", "started")
    assert found(logs) == [failed, ("Pipeline/visits", "Started"), started], "newest first"
    assert found(logs, text="START") == [("Pipeline/visits", "Started"), started]
    assert found(logs, text="revision=3") == [started]
    assert found(logs, text="lake") == [failed]
    assert found(logs, level="error") == [failed]
    assert found(logs, flow="Pipeline/visits") == [("Pipeline/visits", "Started")]
    assert found(logs, limit=1) == [failed]
    assert found(logs, flow="Pipeline/none") == []


def test_lines_are_found_by_time(logs: Api) -> None:
    now = datetime.now(UTC)
    later, earlier = (now + timedelta(hours=1)).isoformat(), (now - timedelta(hours=1)).isoformat()
    assert found(logs, **{"from": later}) == found(logs, to=earlier) == []
    assert len(found(logs, **{"from": earlier, "to": later})) == 3
    assert logs.client.get("/logs", params={"from": "2026-01-01T00:00:00"}).status_code == 422


def test_a_search_that_takes_too_long_says_so(logs: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "LOOK_S", -1.0)
    assert logs.client.get("/logs").json() == {"lines": [], "complete": False}


def batch(number: int, error: str | None = None) -> BatchLine:
    return BatchLine(
        at=NOW + timedelta(seconds=number),
        batch=None if error else number,
        events=None if error else 10,
        duration_ms=None if error else 12.5,
        latency_ms=None,
        outcome="failed" if error else "committed",
        error=error,
    )


def test_batches_are_listed_newest_first(api: Api) -> None:
    api.client.post("/pipelines", json=pipeline("orders"))
    assert api.client.get("/pipelines/orders/batches").json() == {"batches": []}
    directory = flow_directory(api.service.settings, api.service.get("Pipeline", "orders"))
    directory.mkdir(parents=True)
    write_batches(directory, [batch(1), batch(2)])
    write_batches(directory, [batch(3, "no disk")])
    listed = api.client.get("/pipelines/orders/batches").json()["batches"]
    assert listed[0] == {
        "at": "2026-05-01T12:00:03Z",
        "batch": None,
        "events": None,
        "duration_ms": None,
        "latency_ms": None,
        "outcome": "failed",
        "error": "no disk",
    }
    assert [(each["batch"], each["events"], each["outcome"]) for each in listed[1:]] == [
        (2, 10, "committed"),
        (1, 10, "committed"),
    ]
    assert len(api.client.get("/pipelines/orders/batches?limit=1").json()["batches"]) == 1
    assert codes(api.client.get("/pipelines/none/batches")) == ["not_found"]


def test_old_batches_make_room_for_new_ones(api: Api) -> None:
    api.client.post("/pipelines", json=pipeline("orders"))
    directory = flow_directory(api.service.settings, api.service.get("Pipeline", "orders"))
    directory.mkdir(parents=True)
    for start in range(0, 10_000, 500):
        write_batches(directory, [batch(start + i) for i in range(500)])
    assert sum(file.stat().st_size for file in directory.iterdir()) < 3 * MOST_BYTES
    listed = api.client.get("/pipelines/orders/batches?limit=3000").json()["batches"]
    assert [each["batch"] for each in listed] == list(range(9999, 9999 - len(listed), -1))
    assert len(listed) > 1000
