"""The page of a stream, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.kit import Faults, axe, goto, heading

pytestmark = pytest.mark.slow


def stream(product: Product, name: str, schema: str | None = None) -> str:
    spec = {"schema": schema} if schema else {}
    answer = product.client.post("/streams", json={"metadata": {"name": name}, "spec": spec})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def send(product: Product, id: str, *values: str) -> None:
    headers = {"Content-Type": "text/plain"}
    body = "\n".join(values)
    product.client.post(f"/streams/{id}/events", content=body, headers=headers).raise_for_status()


def stats(product: Product, id: str) -> Any:
    return product.client.get(f"/streams/{id}/stats").json()


def test_events_are_seen_as_they_come_and_the_tail_can_rest(page: Page, product: Product) -> None:
    id = stream(product, "tail me")
    send(product, id, "the first")
    goto(page, f"/streams/{id}?tab=live")
    events = page.get_by_role("list", name="Events, newest first")
    expect(events).to_contain_text("the first")
    send(product, id, '{"a": {"b": 1}}')
    events.get_by_role("button", name='{"a": {"b": 1}}').click()
    expect(events.locator("pre")).to_contain_text('"b": 1')
    axe(page)

    page.get_by_role("button", name="Pause").click()
    send(product, id, "while it rests")
    expect(page.get_by_text("1 new event")).to_be_visible()
    expect(events.get_by_text("while it rests")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(events).to_contain_text("while it rests")

    page.get_by_label("Only events that contain").fill("needle")
    send(product, id, "hay", "a needle", "hay")
    expect(page.get_by_role("listitem")).to_have_count(1)
    expect(events).to_contain_text("a needle")


def test_events_are_browsed_by_offset_and_time(page: Page, product: Product) -> None:
    id = stream(product, "browse me")
    send(product, id, *(f"event {number}" for number in range(120)))
    goto(page, f"/streams/{id}?tab=browse")
    shown = page.get_by_text("Offsets ")
    expect(shown).to_contain_text("Offsets 70 to 119")
    page.get_by_role("button", name="Older events").click()
    expect(shown).to_contain_text("Offsets 20 to 69")
    page.get_by_role("button", name="First events").click()
    expect(shown).to_contain_text("Offsets 0 to 49")
    page.get_by_role("button", name="Newer events").click()
    expect(shown).to_contain_text("Offsets 50 to 99")
    page.get_by_label("From: offset").fill("117")
    page.keyboard.press("Enter")
    expect(shown).to_contain_text("Offsets 117 to 119")
    goto(page, f"/streams/{id}?tab=browse&from=time:2000-01-01T00:00:00Z")
    expect(shown).to_contain_text("Offsets 0 to 49")
    axe(page)


def test_events_are_filtered_shown_in_columns_copied_and_downloaded(
    page: Page, product: Product, faults: Faults
) -> None:
    id = stream(product, "filter me", "id BIGINT, customer STRING")
    body = "\n".join(json.dumps({"id": n, "customer": "bob" if n % 10 else "ada"}) for n in range(100))
    headers = {"Content-Type": "application/x-ndjson"}
    product.client.post(f"/streams/{id}/events", content=body, headers=headers).raise_for_status()
    goto(page, f"/streams/{id}?tab=browse")
    page.get_by_role("button", name="Add condition").click()
    page.get_by_role("combobox", name="Field").fill("customer")
    page.get_by_label("Value").fill("ada")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("10 matches in 100 events.")).to_be_visible()
    filter = page.get_by_role("textbox", name="Filter")
    expect(filter).to_have_value("customer = 'ada'")
    faults.allow("status of 422")
    filter.fill("custmer = 'ada'")
    page.keyboard.press("Enter")
    expect(page.get_by_text("there is no field 'custmer' (line 1, column 1)")).to_be_visible()
    filter.fill("customer = 'ada' AND id >= 50")
    page.keyboard.press("Enter")
    expect(page.get_by_text("5 matches in 100 events.")).to_be_visible()
    page.get_by_role("combobox", name="Columns").click()
    page.get_by_role("option", name="customer").click()
    page.keyboard.press("Escape")
    events = page.get_by_role("list", name="Events, oldest first")
    expect(events.get_by_role("listitem").first).to_contain_text("customer")
    axe(page)
    events.get_by_role("button", name="90").click()
    expect(events.get_by_role("button", name="Copy event")).to_be_visible()

    found = {}
    for name in ("JSON lines", "CSV"):
        page.get_by_role("button", name="Download").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=name).click()
        found[name] = Path(download.value.path()).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in found["JSON lines"].splitlines()]
    assert [line["columns"]["id"] for line in lines] == [50, 60, 70, 80, 90]
    assert found["CSV"].splitlines()[0] == "offset,time,key,headers,customer"
    assert len(found["CSV"].splitlines()) == 6


def test_an_event_that_does_not_fit_is_refused_at_its_field(
    page: Page, product: Product, faults: Faults
) -> None:
    id = stream(product, "produce me", "id BIGINT NOT NULL, name STRING")
    goto(page, f"/streams/{id}?tab=produce")
    page.get_by_label("id", exact=False).first.fill("seven")
    page.get_by_label("name").fill("ada")
    faults.allow("status of 400")
    page.get_by_role("button", name="Send event").click()
    expect(page.get_by_text("column 'id' is \"seven\", not an integer")).to_be_visible()
    axe(page)
    page.get_by_label("id", exact=False).first.fill("7")
    page.get_by_label("Key").fill("k1")
    page.get_by_role("button", name="Send event").click()
    expect(page.get_by_text("Acknowledged at offset 0")).to_be_visible()
    (event,) = product.client.get(f"/streams/{id}/events").json()["events"]
    assert event["key"] == "k1"
    assert event["columns"] == {"id": 7, "name": "ada"}


def test_a_stream_tells_who_uses_it_and_how_far_they_are(page: Page, product: Product) -> None:
    id = stream(product, "used one")
    send(product, id, "a", "b")
    spec = {
        "source": {"type": "stream", "stream": id, "position": "earliest"},
        "sinks": [{"id": "out", "type": "drop"}],
    }
    document = {"metadata": {"name": "reads used one"}, "spec": spec}
    product.client.post("/pipelines", json=document).raise_for_status()
    goto(page, f"/streams/{id}")
    expect(page.get_by_role("main").get_by_role("link", name="reads used one")).to_be_visible()
    axe(page)
    page.get_by_role("tab", name="Readers").click()
    expect(page.get_by_role("cell", name="pipeline reads_used_one")).to_be_visible()
    wait_for("both events", lambda: stats(product, id)["readers"][0]["cursor"] == 2)
    page.get_by_role("button", name="Move position").click()
    move = page.get_by_role("dialog")
    expect(move).to_contain_text("continues at offset 0 instead of 2. 2 events are read and delivered again")
    axe(page)
    move.get_by_role("button", name="Move position").click()
    expect(page.get_by_text("The position of pipeline reads_used_one is now offset 0.")).to_be_visible()
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("menuitem", name="pipeline reads used one").click()
    expect(page.get_by_role("dialog")).to_contain_text("Replay events through reads used one")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_text("In use")).to_be_visible()
    page.get_by_role("dialog").get_by_label("Also delete").check()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 documents").click()
    expect(heading(page)).to_have_text("Streams")


def test_streams_without_a_document_can_be_looked_into(page: Page, product: Product, faults: Faults) -> None:
    id = stream(product, "misfits", "id BIGINT")
    headers = {"Content-Type": "application/json"}
    product.client.post(f"/streams/{id}/events", content='{"id": "x"}', headers=headers)
    faults.allow("status of 404")
    goto(page, f"/streams/{id}.dead?tab=browse")
    events = page.get_by_role("list", name="Events, oldest first")
    events.get_by_role("button", name='{"id": "x"}').click()
    expect(events).to_contain_text("wrong_type")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
