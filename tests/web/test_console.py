"""The SQL console, in a real browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.product import Product
from tests.web.kit import WORKER_MS, Faults, axe, goto, heading

pytestmark = pytest.mark.slow

SALES = [("ada", 5), ("bob", 7), ("ada", 4)]


def write(page: Page, sql: str) -> None:
    editor = page.get_by_role("textbox", name="Query")
    for _ in range(3):  # an editor that has just been drawn may not have the focus yet
        editor.click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(sql)
        if sql.partition("\n")[0] in (editor.text_content() or ""):
            break
    page.keyboard.press("Escape")  # closes a completion


def test_a_query_is_run_kept_drawn_and_made_a_pipeline(page: Page, product: Product, faults: Faults) -> None:
    document = {"metadata": {"name": "console sales"}, "spec": {"schema": "customer STRING, amount INT"}}
    product.client.post("/streams", json=document).raise_for_status()
    body = "\n".join(json.dumps({"customer": customer, "amount": amount}) for customer, amount in SALES)
    headers = {"Content-Type": "application/x-ndjson"}
    product.client.post("/streams/console_sales/events", content=body, headers=headers).raise_for_status()

    goto(page, "/sql")
    write(page, "SELECT * FROM console_s")
    page.keyboard.type("a")
    page.get_by_role("option", name="console_sales").click()
    faults.allow("status of 422")
    write(page, "SELECT customer, sum(amuont) AS total\nFROM console_sales GROUP BY customer")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("there is no column 'amuont'", timeout=WORKER_MS)
    expect(page.locator(".cm-lintRange-error")).to_have_text("amuont")

    write(page, "SELECT customer, sum(amount) AS total FROM console_sales GROUP BY customer ORDER BY total")
    page.get_by_role("button", name="Run").click()
    result = page.get_by_role("region", name="Result")
    expect(result.get_by_role("gridcell", name="ada")).to_be_visible(timeout=WORKER_MS)
    expect(result.get_by_role("gridcell", name="9", exact=True)).to_be_visible()
    axe(page)
    result.get_by_text("Chart", exact=True).click()
    expect(result.get_by_role("figure", name="Chart by customer")).to_contain_text("total: between 7 and 9.")
    expect(result.locator("canvas")).to_be_visible()
    axe(page)

    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("Name").fill("Totals")
    page.get_by_role("button", name="Save query").click()
    expect(page.get_by_text("Query Totals saved.")).to_be_visible()
    assert [each["name"] for each in product.client.get("/queries").json()["items"]] == ["Totals"]
    write(page, "SELECT customer FROM console_sales WHERE amount > 4")
    page.get_by_role("button", name="Make this a pipeline").click()
    expect(heading(page)).to_have_text("New pipeline")
    expect(page.get_by_role("main")).to_contain_text("console_sales")
    page.go_back()
    page.get_by_role("button", name="Saved queries").click()
    page.get_by_role("menuitem", name="Totals").first.click()
    expect(page.get_by_role("textbox", name="Query")).to_contain_text("ORDER BY total")
    page.get_by_role("button", name="History").click()
    expect(page.get_by_role("menuitem", name="sum(amuont)")).to_contain_text("Failed")
    product.client.delete("/queries/Totals").raise_for_status()


def test_a_query_that_takes_long_is_cancelled(page: Page, faults: Faults) -> None:
    goto(page, "/sql")
    write(page, "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.id * b.id % 7 = 3")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("Running for 1 s")).to_be_visible()
    faults.allow("status of 409")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
