"""The test panel, in a real browser: samples in, every step's output beside its input, test cases kept."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.product import Product
from tests.web.kit import Faults, axe, goto

pytestmark = pytest.mark.slow

SLOW_MS = 90_000
"""The first run on a worker waits for Spark's Python processes."""

SPEC = {
    "source": {"type": "http", "schema": "id BIGINT, customer STRING, amount DOUBLE"},
    "processors": [
        {"id": "paid", "type": "filter", "where": "amount > 0"},
        {"id": "user", "type": "http", "url": "https://users.example/{customer}", "schema": "tier INT"},
        {"id": "rate", "type": "map", "set": {"per_tier": "amount / response.tier"}},
    ],
    "sinks": [{"id": "rates", "type": "drop"}],
}


@pytest.fixture(scope="module")
def orders(product: Product) -> str:
    """A saved pipeline that asks a service."""
    product.create(_document("panel orders", SPEC))
    return "panel_orders"


def test_samples_are_run_and_kept_as_a_test_case(page: Page, product: Product, orders: str) -> None:
    goto(page, f"/pipelines/{orders}?tab=test")
    expect(page.get_by_text("Suggested from the columns of the source")).to_be_visible()
    axe(page)
    _write(page, "Sample events as text", "id,customer,amount\n1,ada,80\n2,bob,0\n")
    chosen = page.get_by_role("combobox", name="Format of the sample events")
    expect(chosen).to_have_value("detected: CSV")
    _run(page)
    expect(page.get_by_role("alert")).to_contain_text("calls an external system", timeout=SLOW_MS)
    expect(page.get_by_role("region", name="Step paid")).to_contain_text("the condition is not true")
    page.get_by_role("button", name="Suggest an answer").click()
    page.keyboard.press("Control+Enter")
    step = page.get_by_role("region", name="Step rate")
    expect(step).to_contain_text("+per_tier", timeout=SLOW_MS)
    expect(page.get_by_role("table", name="Events for rates")).to_contain_text("ada")
    axe(page)

    page.get_by_role("button", name="Save as test case").click()
    dialog = page.get_by_role("dialog", name="Save as test case")
    dialog.get_by_label("Name").fill("unpaid orders are left out")
    axe(page)
    dialog.get_by_role("button", name="Save test case").click()
    page.get_by_role("button", name="Run all").click()
    card = page.get_by_role("region", name="Test case unpaid orders are left out")
    expect(card).to_contain_text("passed", timeout=SLOW_MS)
    (saved,) = product.get(orders)["spec"]["tests"]
    assert saved["input"] == [
        {"id": 1, "customer": "ada", "amount": 80},
        {"id": 2, "customer": "bob", "amount": 0},
    ]
    assert saved["expect"]["steps"] == {"paid": {"dropped": 1}}
    axe(page)

    page.reload()
    expect(page.get_by_role("textbox", name="Sample events as text")).to_contain_text("2,bob,0")


def test_a_case_that_fails_says_how_and_is_renamed_and_deleted(page: Page, product: Product) -> None:
    spec = {
        "source": {"type": "generate", "rate": 1, "row": {"id": "seq"}},
        "processors": [{"id": "double", "type": "map", "set": {"twice": "id * 2"}}],
        "sinks": [{"type": "drop"}],
        "tests": [{"name": "doubled", "input": [{"id": 4}], "expect": {"output": [{"id": 4, "twice": 9}]}}],
    }
    product.create(_document("panel cases", spec))
    goto(page, "/pipelines/panel_cases?tab=test")
    page.get_by_role("tab", name="Test cases").click()
    page.get_by_role("button", name="Run doubled").click()
    differences = page.get_by_role("table", name="Differences of doubled")
    expect(differences).to_contain_text("output[0].twice", timeout=SLOW_MS)
    expect(differences.get_by_role("row").nth(1)).to_contain_text("98")
    axe(page)
    page.get_by_role("button", name="Rename doubled").click()
    page.get_by_role("textbox", name="New name of doubled").fill("twice as much")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Test case twice as much")).to_be_visible()
    page.get_by_role("button", name="Delete twice as much").click()
    expect(page.get_by_text("No test cases yet")).to_be_visible()
    assert "tests" not in product.get("panel_cases")["spec"]


def test_events_of_a_stream_are_tried(page: Page, product: Product) -> None:
    stream = {"kind": "Stream", "metadata": {"name": "panel clicks"}, "spec": {"schema": "id BIGINT"}}
    assert product.client.post("/streams", json=stream).status_code == 201
    events = [{"id": number} for number in range(5)]
    assert product.client.post("/streams/panel_clicks/events", json=events).status_code == 200
    spec = {
        "source": {"type": "stream", "stream": "panel_clicks"},
        "processors": [{"id": "late", "type": "filter", "where": "id >= 3"}],
        "sinks": [{"type": "drop"}],
    }
    product.create(_document("panel stream", spec))
    goto(page, "/pipelines/panel_stream?tab=test")
    page.get_by_role("button", name="From a stream").click()
    dialog = page.get_by_role("dialog", name="Use events from a stream")
    dialog.get_by_label("Number of events").fill("3")
    axe(page)
    dialog.get_by_role("button", name="Use these events").click()
    expect(_editor(page, "Sample events as text")).to_contain_text('{"id":2,"$meta":{"time":')
    _run(page)
    step = page.get_by_role("region", name="Step late")
    expect(step).to_contain_text("3 in2 out· 1 dropped", timeout=SLOW_MS)


def test_the_builder_tries_what_is_not_saved_and_leads_to_a_mistake(page: Page, faults: Faults) -> None:
    goto(page, "/pipelines/new")
    faults.allow("status of 422")  # the document is wrong on purpose
    page.get_by_role("button", name="From YAML").click()
    text = """\
spec:
  source: {type: generate, rate: 1, row: {id: seq}}
  processors:
    - {id: good, type: map, set: {twice: id * 2}}
    - {id: bad, type: sql, query: SELECT ix FROM input}
"""
    _write(page, "Document as YAML", text)
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_role("button", name="Test", exact=True).click()
    panel = page.get_by_role("region", name="Test", exact=True)
    expect(panel.get_by_text("Suggested from the columns of the source")).to_be_visible()
    _run(page)
    expect(panel.get_by_role("region", name="Step good")).to_contain_text("+twice", timeout=SLOW_MS)
    grip = panel.get_by_role("separator", name="Height of the test panel")
    height = int(grip.get_attribute("aria-valuenow") or 0)
    grip.press("ArrowUp")
    expect(grip).to_have_attribute("aria-valuenow", str(height + 40))
    axe(page)
    panel.get_by_role("button", name="spec.processors[1].query").click()
    form = page.get_by_role("complementary", name="Form")
    expect(form).to_contain_text("There is no column 'ix'")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("dialog", name="Test")).to_be_visible()
    page.wait_for_function("document.documentElement.scrollWidth <= 390")


def _document(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": spec, "status": "paused"}


def _editor(page: Page, name: str) -> Locator:
    editor = page.get_by_role("textbox", name=name)
    expect(editor).to_have_class(re.compile("cm-content"))
    return editor


def _write(page: Page, name: str, text: str) -> None:
    """Put a text into a code editor, which is no field that can be filled."""
    _editor(page, name).fill(text)


def _run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
