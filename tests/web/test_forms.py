"""Forms, in a real browser and against what the server describes."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.product import Product
from tests.web import catalogue
from tests.web.kit import WORKER_MS, Faults, axe, goto, show_as


def test_the_components_that_the_forms_are_tested_with_are_the_current_ones() -> None:
    kept = json.loads(catalogue.FILE.read_text(encoding="utf-8"))
    assert kept == json.loads(catalogue.written()), "run: python -m tests.web.catalogue"


@pytest.mark.slow
def test_a_stream_is_set_up_by_its_form(page: Page, faults: Faults, product: Product) -> None:
    faults.allow("status of 422")
    goto(page, "/streams/new")
    axe(page)
    page.get_by_role("button", name="Create").click()
    expect(field(page, "metadata.name")).to_contain_text("This field is required")
    page.get_by_label("Name").fill("Forms raw")
    main = page.get_by_role("main")
    expect(main).to_contain_text("ID: forms_raw")
    expect(main).to_contain_text("a power loss may lose about the last second")
    page.get_by_role("button", name="Use Replay and recovery").click()
    expect(main).to_contain_text("it survives a killed process and a power loss")
    page.get_by_role("button", name="Undo").click()
    expect(main).to_contain_text("a power loss may lose about the last second")

    retention = field(page, "spec.wal.retention_ms")
    retention.get_by_role("textbox").fill("soon")
    expect(retention).to_contain_text("Must be a valid integer")
    retention.get_by_role("textbox").fill("2 d")
    expect(main).to_contain_text("It is kept for 2 days")
    axe(page)
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/ui/streams/forms_raw$"))
    assert product.client.get("/streams/forms_raw").json()["spec"] == {"wal": {"retention_ms": 172_800_000}}


@pytest.mark.slow
def test_an_edit_shows_what_it_does_and_what_others_did(page: Page, faults: Faults, product: Product) -> None:
    faults.allow("status of 412")
    document = {"kind": "Stream", "metadata": {"name": "forms edited"}, "spec": {}}
    assert product.client.post("/streams", json=document).status_code == 201
    goto(page, "/streams/forms_edited/edit")
    schema = page.get_by_label("Schema")
    schema.fill("id BIGINT")
    page.get_by_role("link", name="Sinks").click()
    page.get_by_role("dialog", name="Leave without saving?").get_by_role("button", name="Stay").click()
    expect(schema).to_have_value("id BIGINT")

    document["spec"] = {"wal": {"max_segments": 8}}
    assert product.client.put("/streams/forms_edited", json=document).status_code == 200
    page.get_by_role("button", name="Save").click()
    plan = page.get_by_role("dialog", name="Review changes")
    expect(plan).to_contain_text("No running flow is affected")
    axe(page)
    plan.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("dialog", name="This document was changed by someone else")
    expect(conflict).to_contain_text("max_segments")
    axe(page)
    conflict.get_by_role("button", name="Overwrite with mine").click()
    expect(page).to_have_url(re.compile("/ui/streams/forms_edited$"))
    assert product.client.get("/streams/forms_edited").json()["spec"] == {"schema": "id BIGINT"}


@pytest.mark.slow
def test_a_source_is_made_as_a_form_and_as_text(page: Page, product: Product) -> None:
    goto(page, "/sources/new")
    page.get_by_role("button", name="generate").click()
    page.get_by_role("textbox", name="Name").fill("forms numbers")
    page.get_by_label("Auto create stream").check(force=True)
    page.get_by_label("Rate").fill("5")
    expect(page.get_by_role("main")).to_contain_text("published to stream forms_numbers")
    page.get_by_role("radiogroup", name="Status after saving").get_by_text("Paused").click()
    axe(page)

    show_as(page, "YAML")
    text = page.get_by_role("textbox", name="Document as YAML")
    expect(text).to_contain_text("auto_create_stream: true")
    axe(page)
    text.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("# by hand\n")
    show_as(page, "Form")
    page.get_by_label("Rate").fill("7")
    show_as(page, "YAML")
    expect(text).to_contain_text("rate: 7")
    expect(text).to_contain_text("# by hand")
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/ui/sources/forms_numbers$"), timeout=WORKER_MS)
    saved = product.client.get("/sources/forms_numbers").json()
    assert saved["spec"] == {"type": "generate", "auto_create_stream": True, "rate": 7}
    assert saved["status"] == "paused"


def field(page: Page, path: str) -> Locator:
    """The field at a place of the document."""
    return page.locator(f'[data-path="{path}"]')
