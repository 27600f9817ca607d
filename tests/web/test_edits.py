"""Edits of what runs: what would be lost is accepted first, and what does not start is taken back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.product import Product
from tests.web.canvas import choose, fill, part
from tests.web.kit import WORKER_MS, Faults, axe, goto

pytestmark = pytest.mark.slow

NUMBERS = {"type": "generate", "rate": 20}
COUNTS = {"n": "count(*)"}
WINDOW = {"id": "minutes", "type": "window", "time": "time", "size": "1m", "aggregates": COUNTS}


def create(product: Product, name: str, **spec: Any) -> None:
    product.create({"kind": "Pipeline", "metadata": {"name": name}, "spec": {"source": NUMBERS, **spec}})


def review(page: Page) -> Any:
    """Save an edit; the plan of it."""
    page.get_by_role("button", name="Review and save").click()
    return page.get_by_role("dialog", name="Review changes")


def test_what_would_be_lost_is_accepted_first(page: Page, product: Product) -> None:
    create(product, "counted", processors=[WINDOW], sinks=[{"id": "out", "type": "drop"}])
    product.wait_for_batches("counted")
    goto(page, "/pipelines/counted/edit")
    part(page, "step:0").click()
    fill(page, "spec.processors[0].size", "2m")
    plan = review(page)
    save = plan.get_by_role("button", name="Save and reset")
    expect(save).to_be_disabled(timeout=WORKER_MS)
    expect(plan).to_contain_text("minutes")
    axe(page)
    plan.get_by_label("I understand this state will be discarded").check()
    save.click()
    expect(page).to_have_url(re.compile("/ui/pipelines/counted$"), timeout=WORKER_MS)
    assert product.get("counted")["spec"]["processors"][0]["size"] == "2m"
    product.wait_for_batches("counted")


def test_what_does_not_start_is_taken_back(
    page: Page, product: Product, faults: Faults, tmp_path: Path
) -> None:
    faults.allow("status of 409")
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.write_text("in the way")
    # Its attempts last longer than the server waits: the answer is 202, and the page follows it.
    effort = {"retries": 4, "backoff_ms": 500}
    lake = {"id": "lake", "type": "file", "path": str(good), "format": "json", **effort}
    create(product, "kept", sinks=[lake])
    product.wait_for_batches("kept")
    goto(page, "/pipelines/kept/edit")
    part(page, "sink:0").click()
    fill(page, "spec.sinks[0].path", str(bad))
    plan = review(page)
    plan.get_by_role("button", name="Save").click(timeout=WORKER_MS)
    expect(plan).to_contain_text("The new revision failed to start and was rolled back", timeout=WORKER_MS)
    axe(page)
    now = product.get("kept")
    assert (now["revision"], now["spec"]["sinks"][0]["path"]) == (3, str(good))

    plan.get_by_role("button", name="Cancel").click()
    other = tmp_path / "other"
    fill(page, "spec.sinks[0].path", str(other))
    review(page).get_by_role("button", name="Save").click(timeout=WORKER_MS)
    expect(page).to_have_url(re.compile("/ui/pipelines/kept$"), timeout=WORKER_MS)
    assert product.get("kept")["spec"]["sinks"][0]["path"] == str(other)


def test_a_pipeline_is_made_of_tasks(page: Page, product: Product) -> None:
    for name, where in (("only even", "seq % 2 = 0"), ("only large", "seq > 9")):
        spec = {"processors": [{"type": "filter", "where": where}]}
        made = product.client.post("/tasks", json={"metadata": {"name": name}, "spec": spec})
        assert made.status_code == 201, made.text
    create(product, "made of tasks", tasks=["only_even"], sinks=[{"id": "out", "type": "drop"}])
    goto(page, "/pipelines/made_of_tasks/edit")
    expect(part(page, "step:0")).to_have_accessible_name(re.compile("only_even"))
    choose(page, "Add a step after only_even", "only_large")
    expect(part(page, "step:1")).to_have_accessible_name(re.compile("only_large"))
    axe(page)
    plan = review(page)
    plan.get_by_role("button", name="Save").click(timeout=WORKER_MS)
    expect(page).to_have_url(re.compile("/ui/pipelines/made_of_tasks$"), timeout=WORKER_MS)
    assert product.get("made_of_tasks")["spec"]["tasks"] == ["only_even", "only_large"]
