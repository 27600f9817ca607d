"""The page of a flow, in a real browser: watched, paused, repaired, rolled back and replayed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.kit import Faults, axe, goto, heading, narrow

pytestmark = pytest.mark.slow

EVENTS = [
    {"id": 1, "amount": "99.5"},
    {"id": 2, "amount": "12,50"},
    {"id": 3, "amount": "n/a"},
]


@pytest.fixture(scope="module")
def flow(product: Product) -> str:
    """A pipeline that runs, has delivered an event, and has two dead letters."""
    columns = {"page in": "id BIGINT, amount STRING", "page out": "id BIGINT, price DOUBLE"}
    for name, schema in columns.items():
        answer = product.client.post("/streams", json=_document("Stream", name, {"schema": schema}))
        assert answer.status_code == 201, answer.text
    query = "SELECT id, CAST(amount AS DOUBLE) AS price FROM input"
    spec = {
        "source": {"type": "stream", "stream": "page_in", "position": "earliest"},
        "processors": [{"id": "number", "type": "sql", "query": query}],
        "sinks": [{"id": "prices", "type": "stream", "stream": "page_out"}],
    }
    product.create(_document("Pipeline", "page prices", spec))
    answer = product.client.post("/streams/page_in/events", json=EVENTS)
    assert answer.status_code == 200, answer.text
    wait_for("two dead letters", lambda: _letters(product)["total"] == 2)
    return "page_prices"


def test_the_page_shows_how_a_flow_is(page: Page, flow: str) -> None:
    goto(page, f"/pipelines/{flow}")
    expect(heading(page)).to_have_text("page prices")
    steps = page.get_by_role("region", name="Steps")
    expect(steps.get_by_role("listitem").filter(has_text="number")).to_contain_text(re.compile(r"failed\s*2"))
    expect(steps.get_by_role("link", name="page_in")).to_be_visible()
    sink = page.get_by_role("region", name="Sink prices")
    expect(sink).to_contain_text("in sync")
    expect(sink).to_contain_text("offset 3")
    expect(page.get_by_role("figure", name="Events per second")).to_be_visible()
    axe(page)
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("log")).to_contain_text("started")
    page.get_by_label("Find").fill("nothing says this")
    expect(page.get_by_text("No matching lines")).to_be_visible()
    axe(page)


def test_a_sink_that_fails_says_so_until_it_has_taken_the_batch(
    page: Page, product: Product, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    effort = {"retries": 10_000, "deadline_ms": 3_600_000, "backoff_ms": 100}
    sink = {"id": "lake", "type": "file", "path": str(in_the_way / "out"), "format": "json", **effort}
    spec = {"source": {"type": "generate", "count": 10}, "sinks": [sink]}
    name = product.create(_document("Pipeline", "page lake", spec))["id"]
    goto(page, f"/pipelines/{name}")
    card = page.get_by_role("region", name="Sink lake")
    expect(card.get_by_text("failing", exact=True)).to_be_visible()
    expect(card).to_contain_text("It is retried automatically.")
    expect(card).to_contain_text("spec.sinks[0]: sink 'lake': ")
    axe(page)
    in_the_way.unlink()
    expect(card.get_by_text("in sync", exact=True)).to_be_visible()
    product.wait_for_status(name, "completed")
    product.client.delete(f"/pipelines/{name}").raise_for_status()


def test_a_flow_is_paused_and_resumed(page: Page, product: Product, flow: str) -> None:
    goto(page, f"/pipelines/{flow}")
    page.get_by_role("button", name="Pause").click()
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    assert product.get(flow)["status"] == "paused"
    expect(page.get_by_role("button", name="Restart")).to_have_count(0)
    resume.click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert product.get(flow)["status"] == "active"


def test_a_letter_is_read_mended_and_replayed(page: Page, product: Product, flow: str) -> None:
    goto(page, f"/pipelines/{flow}?tab=letters")
    page.get_by_role("button", name="0", exact=True).click()
    letter = page.get_by_role("dialog", name="Dead letter 0")
    expect(letter).to_contain_text("cast_invalid_input")
    axe(page)
    letter.get_by_role("textbox", name="Event as JSON").fill('{"id": 2, "amount": 12,50}')
    expect(letter.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    letter.get_by_role("textbox", name="Event as JSON").fill('{"id": 2, "amount": "12.50"}')
    letter.get_by_role("button", name="Save and replay").click()
    expect(page.get_by_text("Saved letter 0 and delivered it.")).to_be_visible()
    expect(letter).to_contain_text("delivered to all sinks")
    assert {"id": 2, "price": 12.5} in _events(product, "page_out")


def test_a_letter_is_given_up_and_taken_back(page: Page, product: Product, flow: str) -> None:
    goto(page, f"/pipelines/{flow}?tab=letters")
    page.get_by_role("checkbox", name="Select letter 1").check()
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    row = page.get_by_role("table", name="Dead letters").get_by_role("row").filter(has_text='"id":3')
    expect(row).to_contain_text("discarded")
    page.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("new")
    assert _letters(product)["letters"][1]["state"] == "new"


def test_an_event_tells_its_story(page: Page, flow: str) -> None:
    goto(page, f"/pipelines/{flow}?tab=letters&letter=1")
    page.get_by_role("link", name="Trace event").click()
    step = page.get_by_role("region", name="Step number")
    expect(step).to_contain_text("Event 2 failed")
    expect(page.get_by_role("region", name="Dead letters")).to_contain_text("letter 1")
    axe(page)
    page.get_by_label("Offset of the event").fill("0")
    page.get_by_label("Offset of the event").press("Enter")
    expect(step).to_contain_text("+price")
    expect(page.get_by_role("region", name="Sinks")).to_contain_text("delivered")


def test_every_tab_fits_a_phone(page: Page, flow: str) -> None:
    readable = {
        "letters": "The value 'n/a'",  # the reason
        "batches": "committed",
        "logs": "started",
        "story": "Recent events of page_in",
        "test": "Suggest",
        "revisions": "current",
        "yaml": "Copy",
    }
    for tab, text in readable.items():
        goto(page, f"/pipelines/{flow}?tab={tab}")
        narrow(page)
        expect(page.get_by_role("tab", selected=True).first).to_be_in_viewport(ratio=1)
        shown = page.get_by_role("tabpanel").get_by_text(text).first
        expect(shown).to_be_visible()
        box = shown.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390, f"{tab} is cut off"
        axe(page)


def test_a_revision_is_compared_and_rolled_back(page: Page, product: Product, flow: str) -> None:
    before = product.get(flow)["revision"]
    answer = product.client.patch(f"/pipelines/{flow}", json={"spec": {"batch": {"max_ms": 200}}})
    assert answer.is_success, answer.text
    goto(page, f"/pipelines/{flow}?tab=revisions")
    difference = page.get_by_role("region", name="Difference")
    expect(difference).to_contain_text("spec.batch")
    axe(page)
    difference.get_by_text("YAML").click()
    expect(difference.locator(".cm-editor").last).to_contain_text("max_ms: 200")
    page.get_by_role("button", name=f"Roll back to revision {before}").click()
    plan = page.get_by_role("dialog")
    expect(plan).to_contain_text("restarts")
    plan.get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("table", name="Revisions")).to_contain_text(f"rollback to {before}")
    assert "batch" not in product.get(flow)["spec"]


def test_a_range_is_counted_then_replayed(page: Page, product: Product, flow: str) -> None:
    goto(page, f"/pipelines/{flow}")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Replay events").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Replay 3 events")).to_be_enabled()
    expect(dialog).to_contain_text("receives these events again")
    axe(page)
    dialog.get_by_role("radio", name="Separate files").check()
    dialog.get_by_label("Directory").fill(str(product.directory / "shadow"))
    dialog.get_by_role("button", name="Replay 3 events").click()
    replays = dialog.get_by_role("region", name="Replays")
    expect(replays.get_by_role("link", name="page prices replay 1")).to_be_visible()
    expect(replays).to_contain_text("completed", timeout=90_000)


def test_a_fault_leads_to_its_field(page: Page, product: Product, faults: Faults) -> None:
    spec = {
        "source": {"type": "generate", "rate": 1, "row": {"amount": "seq"}},
        "processors": [{"id": "bad", "type": "sql", "query": "SELECT amuont FROM input"}],
        "sinks": [{"id": "out", "type": "drop"}],
    }
    product.create({**_document("Pipeline", "page broken", spec), "status": "paused"})
    faults.allow("status of 422")
    goto(page, "/pipelines/page_broken")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'amount'")
    axe(page)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Could not resume")).to_be_visible()
    page.get_by_role("button", name="spec.processors[0].query").click()
    expect(page).to_have_url(re.compile(r"/pipelines/page_broken/edit\?at=spec\.processors"))
    expect(page.get_by_role("complementary", name="Form").get_by_label("Query")).to_contain_text("amuont")


def test_a_definition_says_who_refers_to_it_and_how_to_run_it(
    page: Page, product: Product, faults: Faults
) -> None:
    source = _document("Source", "page rows", {"type": "generate", "rate": 1, "row": {"id": "seq"}})
    assert product.client.post("/sources", json=source).status_code == 201
    spec = {"source": {"ref": "page_rows"}, "sinks": [{"id": "out", "type": "drop"}]}
    product.create({**_document("Pipeline", "page user", spec), "status": "paused"})
    goto(page, "/sources/page_rows")
    expect(page.get_by_role("main")).to_contain_text("This is a definition")
    expect(page.get_by_role("link", name="page user")).to_be_visible()
    axe(page)
    faults.allow("status of 404")
    goto(page, "/sources/nothing_here")
    expect(page.get_by_text("Source nothing_here not found")).to_be_visible()


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def _letters(product: Product) -> dict[str, Any]:
    return dict(product.client.get("/pipelines/page_prices/dead-letters").json())


def _events(product: Product, stream: str) -> list[Any]:
    found = product.client.get(f"/streams/{stream}/events", params={"position": "earliest"}).json()
    return [event["columns"] for event in found["events"]]
