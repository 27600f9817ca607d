"""An edit of nothing but tests: a new revision, and whatever runs goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.control.documents.service import Service
from tests.cli.commands import wait_for
from tests.flows import pipeline

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("patient")]

TICKS = {"type": "generate", "rate": 50}
CASE = {"name": "one", "input": [{"seq": 1}], "expect": {"output": {"count": 1}}}
SETTLED_S = 2.5
"""Longer than a worker takes to look at the registry twice."""


def flow(service: Service, name: str) -> Any:
    return service.get("Pipeline", name).flow


def changes_of_status(service: Service, since: int) -> list[Any]:
    time.sleep(SETTLED_S)
    return [event.data for event in service.registry.events_after(since) if event.type == "status"]


def test_a_flow_goes_on(service: Service) -> None:
    task = {
        "kind": "Task",
        "metadata": {"name": "some"},
        "spec": {"processors": [{"type": "sample", "rate": 1}]},
    }
    service.create("Task", task)
    service.create("Pipeline", pipeline("ticks", source=TICKS, tasks=["some"]))
    wait_for("it to run", lambda: flow(service, "ticks").running_revision == 1)
    before, since = flow(service, "ticks"), service.registry.last_event_id()

    saved = service.patch("Pipeline", "ticks", {"tests": [CASE]}).record
    assert (saved.revision, saved.flow and saved.flow.running_revision) == (2, 2)
    service.patch("Task", "some", {"tests": [CASE]})
    assert changes_of_status(service, since) == []
    after = flow(service, "ticks")
    assert (after.epoch, after.phase, after.running_revision) == (before.epoch, "running", 2)
    wait_for("more batches", lambda: flow(service, "ticks").ops["batches"] > after.ops["batches"])

    service.patch("Task", "some", {"processors": [{"type": "sample", "rate": 0.5}]})
    assert changes_of_status(service, since), "another step is another flow"


def test_a_flow_that_has_ended_stays_so(service: Service) -> None:
    service.create("Pipeline", pipeline("orders"))
    wait_for("the end", lambda: flow(service, "orders").status == "completed")
    wait_for("the worker to let go", lambda: flow(service, "orders").worker is None)
    since = service.registry.last_event_id()
    assert service.patch("Pipeline", "orders", {"tests": [CASE]}).record.revision == 2
    assert changes_of_status(service, since) == []
    assert flow(service, "orders").status == "completed"
