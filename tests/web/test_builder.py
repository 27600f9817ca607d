"""The visual builder, in a real browser against a real server and worker."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.product import Product
from tests.web.canvas import (
    begin_with,
    choose,
    drag,
    fill,
    open_sink,
    part,
    rename,
    save_new,
    show,
    text,
    write,
)
from tests.web.kit import WORKER_MS, Faults, axe, goto, heading

pytestmark = pytest.mark.slow

ROUTED = """kind: Pipeline
metadata: {name: NAME}
spec:
  source: {type: generate, rate: 1, row: {id: seq, amount: rand() * 100}}
  processors:
    # keeps what is worth something
    - {id: worth, type: filter, where: amount > 1}
    - {id: chosen, type: route, rules: [{when: amount > 50, sinks: [large]}], default: [rest]}
  sinks:
    - {id: large, type: drop}
    - {id: rest, type: drop, required: false}
"""


def test_a_pipeline_is_built_on_the_canvas(page: Page, product: Product) -> None:
    goto(page, "/pipelines/new")
    axe(page)
    page.get_by_role("button", name="Empty").click()
    choose(page, "Choose an input", "generate")
    choose(page, "Add a step after the input", "sql")
    write(page, "Query", "SELECT seq, nothing FROM input")
    expect(part(page, "step:0")).to_have_accessible_name(re.compile("^Step sql .*1 error"))
    page.get_by_role("button", name=re.compile("there is no column 'nothing'")).click()
    expect(page.get_by_label("Query")).to_be_focused()
    axe(page)
    write(page, "Query", "SELECT seq AS id, time FROM input")
    choose(page, "Choose an output", "drop")
    choose(page, "Add an output", "drop")
    rename(page, "rest")
    expect(page.get_by_role("status").get_by_text("No problems found. Ready to run.")).to_be_visible()

    choose(page, "Add a step after the input", "filter")
    part(page, "step:0").press("Alt+ArrowRight")
    expect(part(page, "step:0")).to_have_accessible_name(re.compile("^Step sql"))
    save_new(page, "built_on_canvas", "built on canvas")
    expect(page).to_have_url(re.compile("/ui/pipelines/built_on_canvas$"))

    saved = product.get("built_on_canvas")
    assert saved["status"] == "active"
    assert [step["id"] for step in saved["spec"]["processors"]] == ["sql", "filter"]
    assert [sink["id"] for sink in saved["spec"]["sinks"]] == ["drop", "rest"]


def test_text_and_canvas_are_one_document(page: Page) -> None:
    begin_with(page, ROUTED.replace("NAME", "one document"))
    drag(page, part(page, "step:0"), part(page, "step:1"))
    expect(part(page, "step:1")).to_have_accessible_name(re.compile("^Step worth filter"))
    show(page, "YAML")
    assert re.search(
        r"sinks: \[large\].*# keeps what is worth something\s+- \{id: worth", text(page), re.DOTALL
    )

    page.keyboard.insert_text("a: [")
    show(page, "Canvas")
    expect(page.get_by_text("The YAML has an error: the canvas shows the last valid version")).to_be_visible()
    axe(page)
    page.reload()
    expect(page.get_by_text(re.compile("Restored your unsaved draft"))).to_be_visible()
    expect(part(page, "step:1")).to_have_accessible_name(re.compile("^Step worth filter"))
    page.get_by_role("button", name="Fix the YAML").click()
    assert "a: [" in text(page)
    show(page, "Canvas")
    page.get_by_role("button", name="Revert to the valid version").click()

    part(page, "source").click()
    expect(page.get_by_role("complementary", name="Form").get_by_label("Rate")).to_have_value("1")
    open_sink(page, "sink:0")
    rename(page, "big")
    expect(part(page, "step:0")).to_contain_text("to big, else rest")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(part(page, "step:0")).to_contain_text("to large, else rest")

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Streams").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard draft").click()
    expect(heading(page)).to_have_text("Streams")


def test_an_edit_tells_its_plan_and_overwrites_nobody(page: Page, product: Product, faults: Faults) -> None:
    create(product, "edited")
    faults.allow("status of 412")
    goto(page, "/pipelines/edited/edit")
    part(page, "step:0").click()
    write(page, "Where", "amount > 2")
    theirs = {"metadata": {"description": "by somebody else"}}
    assert product.client.patch("/pipelines/edited", json=theirs).is_success

    page.get_by_role("button", name="Review and save").click()
    plan = page.get_by_role("dialog", name="Review changes")
    expect(plan.get_by_text(re.compile(r"\d fields? changed"))).to_be_visible()
    axe(page)
    plan.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("dialog", name="This document was changed by someone else")
    expect(conflict.get_by_text("by somebody else")).to_be_visible()
    axe(page)
    conflict.get_by_role("button", name="Overwrite with mine").click()
    expect(page).to_have_url(re.compile("/ui/pipelines/edited$"))
    saved = product.get("edited")
    assert saved["spec"]["processors"][0]["where"] == "amount > 2"
    assert (saved["revision"], saved["status"]) == (3, "paused")


def test_what_is_wrong_is_refused_in_place_and_can_be_kept_as_paused(
    page: Page, product: Product, faults: Faults
) -> None:
    faults.allow("status of 422")
    begin_with(page, ROUTED.replace("NAME", "half done").replace("amount > 1", "amuont > 1"))
    expect(part(page, "step:0")).to_have_accessible_name(re.compile("1 error"))
    save_new(page, "half_done")
    expect(page.get_by_role("alert").get_by_text("Not saved")).to_be_visible()
    part(page, "step:0").click()
    expect(page.get_by_text(re.compile("There is no column 'amuont'"))).to_be_visible()
    page.get_by_role("combobox", name="Status after saving").click()
    page.get_by_role("option", name="as paused").click()
    save_new(page, "half_done")
    expect(page).to_have_url(re.compile("/ui/pipelines/half_done$"))
    assert product.get("half_done")["status"] == "paused"


def test_a_task_is_built_on_a_small_screen(page: Page, product: Product) -> None:
    for name in ("small in", "small out"):
        document = {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": "id BIGINT"}}
        assert product.client.post("/streams", json=document).status_code == 201
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    goto(page, "/tasks/new")
    page.get_by_role("button", name="Empty").click()
    for button, word in (
        ("Choose an input", "small_in"),
        ("Add a step after the input", "filter"),
        ("Choose an output", "small_out"),
    ):
        choose(page, button, word)
        axe(page)
        page.get_by_role("button", name="Close form").click()
    expect(page.get_by_role("status").get_by_text("No problems found. Ready to run.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    axe(page)
    save_new(page, "new_task")
    expect(page).to_have_url(re.compile("/ui/tasks/new_task$"))
    spec = product.client.get("/tasks/new_task").json()["spec"]
    assert (spec["input"], spec["outputs"]) == ("small_in", [{"stream": "small_out"}])


def test_a_template_takes_events_over_http_and_shows_them_on_its_edges(page: Page, product: Product) -> None:
    goto(page, "/pipelines/new")
    page.get_by_role("button", name=re.compile("^HTTP → stream")).click()
    needs = page.get_by_role("dialog", name="HTTP → stream")
    expect(needs).to_contain_text("stream paid_orders (will be created)")
    needs.get_by_role("button", name="Create and open").click()
    part(page, "source").click()
    form = page.get_by_role("complementary", name="Form")
    expect(form.get_by_label("curl command", exact=True)).to_contain_text("/ingest/orders -H 'Content-Type")
    save_new(page, "orders_in")
    expect(page).to_have_url(re.compile("/ui/pipelines/orders_in$"), timeout=WORKER_MS)

    goto(page, "/pipelines/orders_in/edit?at=spec.source.path")
    form.get_by_role("tab", name="Send").click()
    form.get_by_role("button", name="Insert samples").click()
    axe(page)
    form.get_by_role("button", name="Send", exact=True).click()
    expect(form.get_by_role("status")).to_contain_text("Acknowledged 3 events")
    after = page.get_by_role("button", name=re.compile("^Events after source: "))
    expect(after).to_have_accessible_name(re.compile(r"^Events after source: 3\b"), timeout=WORKER_MS)
    after.click()
    events = page.get_by_role("region", name="Events after source")
    events.get_by_role("button", name="Run on the last 20 events of orders_in.in").click()
    expect(events.get_by_role("table")).to_contain_text("customer 3", timeout=WORKER_MS)
    axe(page)
    events.get_by_role("button", name="Open the test panel").click()
    to_sink = page.get_by_role("button", name=re.compile("^Events after slim to orders: "))
    expect(to_sink).to_have_accessible_name(re.compile("^Events after slim to orders: 2 events"))

    # The form beside the canvas and the tests below it fit the window of a laptop.
    expect(page.get_by_role("region", name="Test")).to_be_in_viewport(ratio=1)
    expect(form).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollHeight") == 900
    product.client.post("/pipelines/orders_in/stop")


def test_a_stream_is_created_where_it_is_named(page: Page, product: Product) -> None:
    begin_with(page, ROUTED.replace("NAME", "naming"))
    open_sink(page, "sink:1")
    page.get_by_role("combobox", name="Type").click()
    page.get_by_role("option", name="stream", exact=True).click()
    fill(page, "spec.sinks[1].stream", "Новые заказы")
    page.get_by_role("button", name="Create stream Новые заказы").click()
    dialog = page.get_by_role("dialog", name="New stream")
    expect(dialog).to_contain_text("ID: novye_zakazy (can't be changed later)")
    expect(dialog.get_by_label("Schema")).to_have_value("id bigint, amount double")
    axe(page)
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator('[data-path="spec.sinks[1].stream"] input').first).to_have_value("novye_zakazy")
    expect(page.get_by_role("status").get_by_text("No problems found. Ready to run.")).to_be_visible()
    assert product.client.get("/streams/novye_zakazy").json()["spec"]["schema"] == "id bigint, amount double"


def create(product: Product, name: str) -> None:
    """A paused pipeline."""
    spec: dict[str, Any] = {
        "source": {"type": "generate", "rate": 1, "row": {"id": "seq", "amount": "rand() * 100"}},
        "processors": [{"id": "worth", "type": "filter", "where": "amount > 1"}],
        "sinks": [{"id": "out", "type": "drop"}],
    }
    document = {"kind": "Pipeline", "metadata": {"name": name}, "spec": spec, "status": "paused"}
    assert product.client.post("/pipelines", json=document).status_code == 201
