"""The demo: saved at once without a worker, so it has to be good by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.control.documents.raw import versioned
from penstock.control.documents.service import Service
from penstock.demo import BROKEN, prepare
from penstock.engine.plan.analysis import Analysis, analyse, offline
from penstock.errors import Problem
from tests.api.kit import open_service
from tests.flows import unassigned


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service without any worker."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    with open_service(tmp_path) as service:
        yield service
        service.streams.stop()


def demo(service: Service) -> list[dict[str, Any]]:
    return prepare(service.settings.home)


def test_all_of_it_is_there_at_once(bare: Service) -> None:
    added = bare.add_missing(demo(bare))
    assert {(change.kind, change.id) for change in added} == {
        ("Pipeline", "demo_broken"),
        ("Pipeline", "demo_orders"),
        ("Pipeline", "demo_page_views"),
        ("Pipeline", "demo_visits"),
        ("Source", "demo_clicks"),
        ("Source", "demo_visitors"),
        ("Stream", "demo_clicks"),
        ("Stream", "demo_page_views"),
        ("Stream", "demo_slow_clicks"),
        ("Task", "demo_slow_clicks"),
    }
    assert bare.registry.statuses()["Pipeline"] == {
        "demo broken": "paused",
        "demo orders": "active",
        "demo page views": "active",
        "demo visits": "active",
    }
    assert bare.streams.log("demo_clicks").bounds().next == 0
    assert len(unassigned(bare.flows)) == 5, "they wait for a worker"


def test_what_is_there_stays_as_it_is(bare: Service) -> None:
    bare.add_missing(demo(bare))
    assert bare.add_missing(demo(bare)) == []
    orders = bare.registry.get("Pipeline", "demo_orders")
    changed = {**orders.document, "metadata": {**orders.document["metadata"], "description": "mine"}}
    bare.registry.update("Pipeline", "demo_orders", changed, desired="stopped")
    bare.registry.delete("Pipeline", "demo_visits")
    assert [change.id for change in bare.add_missing(demo(bare))] == ["demo_visits"]
    kept = bare.registry.get("Pipeline", "demo_orders")
    assert kept.document["metadata"]["description"] == "mine"
    assert kept.flow is not None
    assert kept.flow.desired == "stopped"


def test_the_errors_of_the_broken_one_are_kept_once_a_worker_can_tell(
    bare: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.add_missing(demo(bare))
    problem = Problem(code="unknown_column", message="there is no column 'amuont'", path="spec.processors[0]")
    asked = []

    def judge(documents: list[Any]) -> list[Analysis]:
        asked.append(documents)
        return [Analysis(valid=False, errors=[problem])]

    monkeypatch.setattr(bare.judge, "all", judge)
    last = bare.registry.last_event_id()
    for _ in range(2):
        bare.check_resting("Pipeline", BROKEN)
    flow = bare.registry.get("Pipeline", BROKEN).flow
    assert flow is not None
    assert flow.error is not None
    assert flow.error["code"] == "unknown_column"
    assert len(asked) == 1, "its errors are known then"
    (event,) = bare.registry.events_after(last)
    assert (event.kind, event.name, event.type) == ("Pipeline", "demo broken", "updated")
    bare.check_resting("Pipeline", "demo_orders")
    bare.check_resting("Pipeline", "nowhere")
    assert len(asked) == 1, "what runs is judged by its worker"


def test_spark_finds_nothing_wrong_with_it_and_nothing_to_infer(bare: Service, spark: SparkSession) -> None:
    documents = [versioned(raw) for raw in demo(bare)]
    lookup, known = offline(documents)
    defaults = bare.settings.defaults.model_dump()
    for raw in documents:
        analysis = analyse(raw, lookup, known, defaults, spark)
        if raw["metadata"]["name"] == "demo broken":
            assert [(each.path or "").partition(".")[0] for each in analysis.errors] == ["spec"]
            assert "amuont" in analysis.errors[0].message
        else:
            assert analysis.errors == []
            assert analysis.document == raw
