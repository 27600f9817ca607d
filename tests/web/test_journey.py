"""A person's way through the whole product, in a real browser: build, test, run, break, mend, move.

In the end everything in Penstock is deleted and imported again: no other module may be using it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.canvas import choose, fill, rename, save_new, write
from tests.web.kit import WORKER_MS, Faults, axe, goto, heading

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LONG_ID = 9007199254740993
"""What a number of JavaScript cannot hold: it would become ...992."""

SAMPLES = [{"id": LONG_ID, "amount": "10.5"}, {"id": 2, "amount": "n/a"}]


def test_from_nothing_to_a_running_pipeline_and_back(
    page: Page, product: Product, faults: Faults, tmp_path: Path
) -> None:
    faults.allow("status of 422")
    lake = tmp_path / "lake"
    assert exported(product) == [], "a Penstock with nothing in it"
    create_stream(page, "orders", "id BIGINT, amount STRING")
    create_stream(page, "prices", "id BIGINT, price DOUBLE")
    build(page, lake)
    try_on_samples(page)
    save_new(page, "priced")
    expect(page).to_have_url(re.compile("/ui/pipelines/priced$"))

    produce(page, 1, "10.5")
    watch(page, product, events=1)
    pause_and_resume(page, product)
    repair_a_letter(page, product)
    break_and_mend_a_sink(page, product, lake)
    roll_back(page, product)

    bundle = export(page, tmp_path)
    delete_everything(page, product)
    import_again(page, bundle)
    assert exported(product) == documents_in(json.loads(bundle.read_text()))
    expect(page.locator(".ag-row[row-id='priced']").first).to_be_visible()
    produce(page, 7, "7.0")
    wait_for("events through the imported pipeline", lambda: {"id": 7, "price": 7.0} in prices(product))


def create_stream(page: Page, name: str, schema: str) -> None:
    goto(page, "/streams")
    page.get_by_role("link", name="Create").first.click()
    expect(heading(page)).to_have_text("New stream")  # the grid before it has a field for names, too
    page.get_by_label("Name").fill(name)
    page.get_by_label("Schema").fill(schema)
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(f"/ui/streams/{name}$"))


def build(page: Page, lake: Path) -> None:
    """Stream → SQL → stream and files, with a fault on the way that is found and mended."""
    goto(page, "/pipelines/new")
    page.get_by_role("button", name="Empty").click()
    choose(page, "Choose an input", "stream")
    fill(page, "spec.source.stream", "orders")
    choose(page, "Add a step after the input", "sql")
    write(page, "Query", "SELECT id, CAST(amuont AS DOUBLE) AS price FROM input")
    expect(page.get_by_text(re.compile("did you mean 'amount'")).first).to_be_visible()
    write(page, "Query", "SELECT id, CAST(amount AS DOUBLE) AS price FROM input")
    choose(page, "Choose an output", "stream")
    fill(page, "spec.sinks[0].stream", "prices")
    choose(page, "Add an output", "file")
    rename(page, "lake")
    fill(page, "spec.sinks[1].path", str(lake))
    page.locator('[data-path="spec.sinks[1].format"] input').first.click()
    page.get_by_role("option", name="json", exact=True).click()
    required = page.locator('[data-path="spec.sinks[1].required"] input').first
    required.press("Space")  # a click could meet a form that still makes room for the hint of the format
    expect(required).not_to_be_checked()
    page.get_by_role("button", name="Settings", exact=True).last.click()
    page.get_by_role("textbox", name="Name").fill("priced")


def try_on_samples(page: Page) -> None:
    page.get_by_role("button", name="Test", exact=True).click()
    write(page, "Sample events as text", "\n".join(map(json.dumps, SAMPLES)))
    page.get_by_role("button", name=re.compile("^Run")).click()
    out = page.get_by_role("region", name="Result")
    expect(out).to_contain_text("+price", timeout=WORKER_MS)
    expect(out).to_contain_text(str(LONG_ID))
    expect(out).to_contain_text(re.compile("failed"))
    axe(page)
    page.get_by_role("button", name="Close the test panel").click()


def produce(page: Page, id: int, amount: str) -> None:
    goto(page, "/streams/orders?tab=produce")
    page.get_by_label("id", exact=True).fill(str(id))
    page.get_by_label("amount", exact=True).fill(amount)
    page.get_by_role("button", name="Send event").click()
    expect(page.get_by_text("Acknowledged at offset")).to_be_visible()


def watch(page: Page, product: Product, events: int) -> None:
    goto(page, "/pipelines/priced")
    sink = page.get_by_role("region", name="Sink stream")
    expect(sink).to_contain_text("in sync", timeout=WORKER_MS)
    wait_for("the event", lambda: len(prices(product)) >= events)
    goto(page, "/")
    expect(page.get_by_role("main")).to_contain_text(
        "priced" if attention(product) else "Everything is running normally"
    )


def pause_and_resume(page: Page, product: Product) -> None:
    goto(page, "/pipelines/priced")
    page.get_by_role("button", name="Pause").click()
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible(timeout=WORKER_MS)
    assert product.get("priced")["status"] == "paused"
    resume.click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=WORKER_MS)


def repair_a_letter(page: Page, product: Product) -> None:
    """An event that no number can be made of is a dead letter; it is edited and goes through."""
    produce(page, LONG_ID, "n/a")
    wait_for("a dead letter", lambda: letters(product)["total"] == 1)
    goto(page, "/pipelines/priced?tab=letters")
    page.get_by_role("button", name="0", exact=True).click()
    letter = page.get_by_role("dialog", name="Dead letter 0")
    event = letter.locator(".cm-content")
    expect(event).to_contain_text(str(LONG_ID))
    event.fill(event.inner_text().replace("n/a", "2.5"))
    letter.get_by_role("button", name="Save", exact=True).click()
    letter.get_by_role("button", name="Replay", exact=True).click()
    dialog = page.get_by_role("dialog", name="Replay dead letters")
    dialog.get_by_role("button", name="Replay 1").click()
    expect(dialog.get_by_role("table")).to_contain_text("delivered", timeout=WORKER_MS)
    assert {"id": LONG_ID, "price": 2.5} in prices(product)


def break_and_mend_a_sink(page: Page, product: Product, lake: Path) -> None:
    """A best-effort sink whose directory is in the way falls behind, and gets what it missed later."""
    answer = product.client.post("/pipelines/priced/pause")
    assert answer.status_code == 200, answer.text
    kept = lake.rename(lake.with_name("kept"))
    lake.write_text("in the way")
    product.client.post("/pipelines/priced/resume")
    produce(page, 3, "3.5")
    goto(page, "/pipelines/priced")
    sink = page.get_by_role("region", name="Sink lake")
    expect(sink).to_contain_text("behind", timeout=WORKER_MS)
    axe(page)
    lake.unlink()
    kept.rename(lake)
    catch_up = sink.get_by_role("button", name="Catch up now")
    if catch_up.is_visible():  # else it was quicker by itself
        catch_up.click()
    expect(sink).to_contain_text("in sync", timeout=WORKER_MS)
    wait_for("the missed event", lambda: '"id":3' in files(lake))


def roll_back(page: Page, product: Product) -> None:
    change = {"metadata": {"description": "a change for the worse"}}
    assert product.client.patch("/pipelines/priced", json=change).is_success
    goto(page, "/pipelines/priced?tab=revisions")
    page.get_by_role("button", name="Roll back to revision 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("table", name="Revisions")).to_contain_text("rollback to 1", timeout=WORKER_MS)
    assert product.get("priced")["metadata"]["description"] == ""


def export(page: Page, directory: Path) -> Path:
    goto(page, "/pipelines")
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="JSON", exact=True).click()
    file = directory / "bundle.json"
    download.value.save_as(file)
    return file


def delete_everything(page: Page, product: Product) -> None:
    goto(page, "/streams")
    page.locator(".ag-header-select-all").get_by_role("checkbox").first.check()
    page.get_by_role("toolbar", name="Streams").get_by_role("button", name=re.compile("^Delete")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("in use", timeout=WORKER_MS)
    expect(dialog.get_by_role("link", name="priced").first).to_be_visible()
    axe(page)
    dialog.get_by_role("checkbox", name=re.compile("Also delete the documents that refer")).check()
    dialog.get_by_role("button", name=re.compile("^Delete")).click()
    expect(dialog).to_be_hidden(timeout=WORKER_MS)
    assert exported(product) == []


def import_again(page: Page, bundle: Path) -> None:
    goto(page, "/sinks")
    page.get_by_role("button", name="Upload").first.click()
    dialog = page.get_by_role("dialog", name="Upload documents")
    dialog.locator("input[type=file]").set_input_files(bundle)
    expect(dialog).to_contain_text("priced", timeout=WORKER_MS)
    axe(page)
    dialog.get_by_role("button", name=re.compile(r"^Apply \d+ changes")).click()
    expect(dialog).to_be_hidden(timeout=WORKER_MS)
    goto(page, "/pipelines")


def prices(product: Product) -> list[Any]:
    found = product.client.get("/streams/prices/events").json()
    return [event["columns"] for event in found.get("events", [])]


def letters(product: Product) -> dict[str, Any]:
    return dict(product.client.get("/pipelines/priced/dead-letters").json())


def attention(product: Product) -> list[Any]:
    return list(product.client.get("/overview").json()["attention"])


def files(directory: Path) -> str:
    return "".join(file.read_text() for file in directory.rglob("*.json"))


def exported(product: Product) -> list[Any]:
    return documents_in(product.client.get("/bundle").json())


def documents_in(bundle: dict[str, Any]) -> list[Any]:
    """The documents of a bundle, in an order that says nothing."""
    return sorted(bundle["documents"], key=lambda each: (each["kind"], each["metadata"]["name"]))
