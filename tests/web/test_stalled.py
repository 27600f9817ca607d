"""A flow that does not run is seen everywhere, and its past is looked into, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.kit import axe, goto

pytestmark = pytest.mark.slow


def backlogs(product: Product) -> dict[str, int | None]:
    """The backlog of each flow in the overview."""
    return {flow["key"]: flow["lag_events"] for flow in product.client.get("/overview").json()["flows"]}


def test_a_stalled_flow_comes_first_and_is_stalled_everywhere(
    page: Page, product: Product, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    product.client.post("/streams", json={"metadata": {"name": "stuck in"}, "spec": {}}).raise_for_status()
    sink = {"id": "lake", "type": "file", "path": str(in_the_way / "out"), "format": "json", "retries": 0}
    spec = {
        "source": {"type": "stream", "stream": "stuck_in", "position": "earliest"},
        "sinks": [sink],
        "restart": {"max_attempts": 1000, "backoff_ms": 500, "max_backoff_ms": 500},
    }
    name = product.create({"kind": "Pipeline", "metadata": {"name": "stuck"}, "spec": spec})["id"]
    product.client.post("/streams/stuck_in/events", json=[{"id": 1}, {"id": 2}]).raise_for_status()
    wait_for("the second failure", lambda: product.get(name)["phase"] == "stalled")
    wait_for("a sample of the backlog", lambda: backlogs(product) == {"Pipeline/stuck": 2})
    product.client.post("/streams/stuck_in/events", json=[{"id": 3}]).raise_for_status()

    goto(page, "/")
    first = page.get_by_role("listitem").filter(has_text="Error:").first
    expect(first).to_contain_text(re.compile(r"Pipeline 'stuck' is stalled: \d+ failed attempts since"))
    expect(first).to_contain_text("backlog 3 events and growing")
    expect(page.get_by_role("link", name="1 stalled pipelines")).to_be_visible()
    axe(page)
    goto(page, "/topology")
    expect(page.locator('[data-status="stalled"]')).to_contain_text("stuck")
    goto(page, "/pipelines")
    expect(page.get_by_role("row").filter(has_text="stuck")).to_contain_text("stalled")
    page.keyboard.press("Control+k")
    page.get_by_role("textbox", name="Search and commands").fill("stuck")
    expect(page.get_by_text("pipeline · stuck · stalled").first).to_be_visible()
    page.keyboard.press("Escape")
    goto(page, "/logs")
    page.get_by_label("Find").fill("failed:")
    page.get_by_role("combobox", name="Level").click()
    page.get_by_role("option", name="Errors", exact=True).click()
    expect(
        page.get_by_role("table", name="Log lines").get_by_role("link", name="stuck").first
    ).to_be_visible()
    axe(page)

    goto(page, f"/pipelines/{name}")
    expect(page.get_by_text("Stalled: this flow should process events")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(
        re.compile(r"\d+ failed attempts since its last good batch")
    )
    page.get_by_role("tab", name="Batches").click()
    expect(page.get_by_role("gridcell", name="failed").first).to_be_visible()
    axe(page)

    in_the_way.unlink()
    wait_for("a batch", lambda: product.get(name)["phase"] == "running")
    expect(page.get_by_role("gridcell", name="committed").first).to_be_visible()
    expect(page.get_by_text("Stalled: this flow should process events")).to_have_count(0)
    product.client.delete(f"/pipelines/{name}").raise_for_status()


def test_charts_are_zoomed_and_an_event_is_picked_and_traced(page: Page, product: Product) -> None:
    product.client.post("/streams", json={"metadata": {"name": "told in"}, "spec": {}}).raise_for_status()
    spec = {"source": {"type": "stream", "stream": "told_in"}, "sinks": [{"id": "out", "type": "drop"}]}
    name = product.create({"kind": "Pipeline", "metadata": {"name": "told"}, "spec": spec})["id"]
    product.client.post("/streams/told_in/events", json=[{"id": 7}]).raise_for_status()
    wait_for("a batch", lambda: product.get(name)["ops"]["batches"])
    goto(page, f"/pipelines/{name}")
    chart = page.get_by_role("figure", name="Events per second")
    expect(chart).to_contain_text("Revision 1")
    over = chart.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30, steps=4)
    page.mouse.up()
    reset = page.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_visible()
    axe(page)
    reset.click()
    expect(reset).to_have_count(0)

    goto(page, "/topology")
    page.locator(".react-flow__edge").filter(has=page.locator('[id*="told_in"]')).first.dispatch_event(
        "click"
    )
    drawer = page.get_by_role("dialog", name=re.compile("told in → told"))
    expect(drawer.get_by_role("table", name="Recent events")).to_contain_text('{"id":7}')
    axe(page)
    drawer.get_by_role("button", name="Trace event 0").click()
    expect(page).to_have_url(re.compile(r"tab=story&offset=0"))
    expect(page.get_by_role("region", name="Recent events")).to_contain_text("Recent events of told_in")
    product.client.delete(f"/pipelines/{name}").raise_for_status()
