"""The grids of documents, upload and download, and the command palette, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect

from tests.product import Product
from tests.web.kit import Faults, axe, goto, heading

pytestmark = pytest.mark.slow


def save(product: Product, kind: str, name: str, spec: dict[str, Any], **more: Any) -> None:
    place = f"/{kind.lower()}s"
    answer = product.client.post(place, json={"kind": kind, "metadata": {"name": name}, "spec": spec, **more})
    assert answer.status_code == 201, answer.text


def row(page: Page, id: str) -> Locator:
    return page.locator(f".ag-row[row-id='{id}']")


def test_a_grid_shows_what_takes_effect_and_keeps_its_filters_in_the_address(
    page: Page, product: Product
) -> None:
    save(product, "Stream", "grid plain", {})
    save(product, "Stream", "grid other", {"wal": {"sync": True, "compression": "lz4", "max_segments": 7}})
    goto(page, "/streams?q=grid")
    plain = row(page, "grid_plain")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Max segments").check()
    page.get_by_role("checkbox", name="WAL").uncheck()
    page.keyboard.press("Escape")
    for text in ("7 d", "zstd", "64", "grid plain", "grid_plain"):
        expect(plain.get_by_text(text, exact=True)).to_be_visible()
    page.get_by_label("Max segments filter").fill("> 7")
    expect(row(page, "grid_other")).to_have_count(0)
    expect(plain).to_be_visible()
    page.get_by_label("Max segments filter").fill("")
    page.get_by_label("Sync filter").select_option("on")
    expect(row(page, "grid_other")).to_be_visible()
    expect(plain).to_have_count(0)
    expect(page).to_have_url(re.compile("sync=on"))
    page.reload()
    expect(row(page, "grid_other")).to_be_visible()
    expect(plain).to_have_count(0)
    axe(page)
    page.get_by_role("button", name="Clear filters").click()
    expect(plain).to_be_visible()

    page.get_by_role("button", name="Show times").click()
    expect(page.get_by_role("columnheader", name="Created")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Hide times")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Max segments")).to_be_visible()  # as it was chosen
    expect(page.get_by_role("columnheader", name="WAL")).to_have_count(0)

    row(page, "grid_other").get_by_text("lz4").click()
    expect(heading(page)).to_have_text("grid other")


def test_documents_appear_change_and_go_by_themselves(page: Page, product: Product) -> None:
    goto(page, "/sinks")
    save(product, "Sink", "grid live", {"type": "drop"})
    expect(row(page, "grid_live")).to_be_visible()
    product.client.delete("/sinks/grid_live").raise_for_status()
    expect(row(page, "grid_live")).to_have_count(0)


def test_what_is_referred_to_is_deleted_with_those_who_refer_to_it_and_comes_back(
    page: Page, product: Product
) -> None:
    save(product, "Stream", "doomed in", {})
    task = {"input": "doomed_in", "processors": [], "outputs": [{"stream": "doomed_in"}]}
    save(product, "Task", "doomed task", task, status="paused")
    goto(page, "/streams?q=doomed")
    page.get_by_role("button", name="Delete doomed in").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name="doomed task").first).to_be_visible()
    expect(dialog.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    axe(page)
    dialog.get_by_label("Also delete").check()
    dialog.get_by_role("button", name="Delete 2 documents").click()
    expect(row(page, "doomed_in")).to_have_count(0)
    assert product.client.get("/tasks/doomed_task").status_code == 404

    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Restored")).to_be_visible()
    expect(row(page, "doomed_in")).to_be_visible()
    assert product.client.get("/tasks/doomed_task").json()["status"] == "paused"


def test_flows_are_paused_and_resumed_in_the_row_and_many_at_once(page: Page, product: Product) -> None:
    name = "a pipeline whose name is as long as those that people give to them"
    spec = {"source": {"type": "generate", "rate": 1, "row": {"id": "seq"}}, "sinks": [{"type": "drop"}]}
    save(product, "Pipeline", f"{name} 1", spec, status="paused")
    save(product, "Pipeline", f"{name} 2", spec, status="paused")
    goto(page, "/pipelines?q=whose")
    first = page.get_by_role("link", name=f"{name} 1")
    expect(first).to_be_visible()
    cell = row(page, f"{name} 1".replace(" ", "_")).locator("[col-id=name]")
    assert cell.evaluate("cell => cell.scrollHeight <= cell.clientHeight + 1")  # readable in full
    page.get_by_role("button", name=f"Resume {name} 1").click()
    expect(page.get_by_text(f"Resumed pipeline {name} 1.")).to_be_visible()
    page.locator(".ag-header-select-all input").check()
    expect(page.get_by_role("button", name="Resume 1")).to_be_visible()
    page.get_by_role("button", name="Pause 1").click()
    expect(page.get_by_role("button", name="Resume 2")).to_be_visible()
    statuses = [each["status"] for each in product.client.get("/pipelines?search=whose").json()["items"]]
    assert statuses == ["paused", "paused"]


def test_many_rows_are_deleted_at_once(page: Page, product: Product) -> None:
    for number in range(3):
        save(product, "Stream", f"bulk {number}", {})
    goto(page, "/streams?q=bulk")
    expect(row(page, "bulk_2")).to_be_visible()
    page.locator(".ag-header-select-all input").check()
    page.get_by_role("button", name="Delete 3").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 3 documents").click()
    expect(page.get_by_text("Deleted 3 streams.")).to_be_visible()
    assert product.client.get("/streams?search=bulk").json()["total"] == 0


def test_an_upload_shows_what_changes_before_it_does(
    page: Page, product: Product, faults: Faults, tmp_path: Path
) -> None:
    save(product, "Stream", "upload old", {})
    goto(page, "/sinks")
    page.get_by_role("button", name="Upload").first.click()
    dialog = page.get_by_role("dialog", name="Upload documents")
    text = dialog.get_by_role("textbox", name="Documents")

    faults.allow("status of 422")
    text.fill("kind: Stream\nmetadata: {name: upload new}\nspec: {wal: {compression: zip}}")
    expect(dialog.get_by_role("alert")).to_contain_text("spec.wal.compression stream 'upload new': ")

    documents = [
        {"kind": "Stream", "metadata": {"name": "upload old"}, "spec": {"wal": {"max_segments": 9}}},
        {"kind": "Stream", "metadata": {"name": "upload new"}, "spec": {}},
    ]
    file = tmp_path / "bundle.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    dialog.locator("input[type=file]").set_input_files(file)
    preview = dialog.get_by_role("region", name="Changes")
    expect(preview.get_by_text("1 changed")).to_be_visible()
    expect(preview.get_by_text("upload new")).to_be_visible()
    preview.get_by_role("button", name=re.compile("upload old")).click()
    expect(preview.get_by_text("spec.wal")).to_be_visible()
    axe(page)
    assert product.client.get("/streams/upload_new").status_code == 404

    dialog.get_by_role("button", name="Apply 2 changes").click()
    expect(page.get_by_text("Imported: 1 created, 1 updated.")).to_be_visible()
    assert product.client.get("/streams/upload_old").json()["spec"] == {"wal": {"max_segments": 9}}


def test_the_registry_and_a_selection_can_be_downloaded(page: Page, product: Product) -> None:
    save(product, "Stream", "download me", {})
    goto(page, "/streams?q=download")
    row(page, "download_me").wait_for()
    page.locator(".ag-header-select-all input").check()
    found = {}
    for name in ("JSON", "Selected, as YAML"):
        page.get_by_role("button", name="Download", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=name, exact=True).click()
        found[name] = Path(download.value.path()).read_text(encoding="utf-8")
    assert "download me" in [each["metadata"]["name"] for each in json.loads(found["JSON"])["documents"]]
    (alone,) = yaml.safe_load(found["Selected, as YAML"])["documents"]
    assert alone == {
        "apiVersion": "penstock/v1",
        "kind": "Stream",
        "metadata": {"name": "download me"},
        "spec": {},
    }


def test_the_palette_finds_documents_and_does_things_by_keyboard(page: Page, product: Product) -> None:
    spec = {"source": {"type": "generate", "rate": 1, "row": {"id": "seq"}}, "sinks": [{"type": "drop"}]}
    save(product, "Pipeline", "palette flow", spec, status="stopped")
    save(product, "Stream", "palette stream", {})
    goto(page, "/workers")
    page.keyboard.press("Control+k")
    search = page.get_by_label("Search and commands").last
    search.fill("palette stre")
    expect(page.get_by_text("stream · palette_stream").first).to_be_visible()
    axe(page)
    page.emulate_media(color_scheme="dark")
    axe(page)
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("palette stream")

    page.keyboard.press("Control+k")
    expect(page.locator("[data-action]").first).to_contain_text("palette stream")  # what was used last
    search.fill("test palette fl")
    expect(page.get_by_text("Test palette flow")).to_be_visible()
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("palette flow")
    expect(page).to_have_url(re.compile("tab=test"))


def test_a_small_screen_scrolls_the_grid_and_not_the_page(page: Page, product: Product) -> None:
    save(product, "Stream", "small screen", {})
    page.set_viewport_size({"width": 390, "height": 844})
    goto(page, "/streams?q=small")
    page.get_by_role("button", name="Actions for small screen").click()
    page.get_by_role("menuitem", name="View").click()
    expect(page.get_by_role("dialog").get_by_text("kind: Stream")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
