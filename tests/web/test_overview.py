"""The overview, the workers and the settings, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.kit import axe, goto, heading, narrow

pytestmark = pytest.mark.slow

GENERATE = {"type": "generate", "rate": 50, "row": {"id": "seq"}}


def save(product: Product, name: str, status: str, query: str) -> None:
    """A pipeline that generates events."""
    steps = [{"id": "step", "type": "sql", "query": query}]
    spec = {"source": GENERATE, "processors": steps, "sinks": [{"id": "out", "type": "drop"}]}
    document = {"metadata": {"name": name}, "status": status, "spec": spec}
    answer = product.client.post("/pipelines", json=document)
    assert answer.status_code == 201, answer.text


def test_what_needs_attention_leads_to_where_it_is_repaired(page: Page, product: Product) -> None:
    save(product, "seen broken", "paused", "SELECT missing FROM input")
    save(product, "seen running", "active", "SELECT id FROM input")
    wait_for("events to flow", lambda: product.client.get("/overview").json()["totals"]["in_rate"] > 0)
    goto(page, "/")
    item = page.get_by_role("listitem").filter(has_text="seen broken")
    expect(item).to_contain_text("there is no column 'missing'")
    expect(item).to_contain_text("penstock resume seen_broken")

    events = page.get_by_role("link", name=re.compile("^Events in"))
    expect(events).not_to_contain_text(re.compile(r"\b0/s"))
    chart = page.get_by_role("figure", name=re.compile("Events per second"))
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart).to_contain_text(re.compile(r"In: .*/s now, between"))
    axe(page)

    item.get_by_role("link", name="Open seen broken").click()
    expect(heading(page)).to_contain_text("seen broken")


def test_statuses_lead_to_the_grid_with_only_those(page: Page, product: Product) -> None:
    save(product, "resting", "paused", "SELECT id FROM input")
    goto(page, "/")
    page.get_by_role("link", name=re.compile(r"^\d+ paused pipelines$")).click()
    expect(page).to_have_url(re.compile(r"/ui/pipelines\?status=paused$"))
    expect(heading(page)).to_have_text("Pipelines")


def test_workers_show_what_they_run(page: Page, product: Product) -> None:
    save(product, "carried", "active", "SELECT id FROM input")
    goto(page, "/workers")
    expect(page.get_by_role("cell", name="ready")).to_be_visible()
    expect(page.get_by_role("cell").filter(has_text=re.compile(r"\d+ MiB|GiB"))).to_be_visible()
    link = page.get_by_role("link", name="carried")
    expect(link).to_be_visible()
    axe(page)
    narrow(page)
    axe(page)


def test_settings_are_found_and_the_theme_is_chosen(page: Page) -> None:
    goto(page, "/settings")
    page.get_by_label("Find a setting").fill("lease")
    expect(page.get_by_text("worker.lease_ms")).to_be_visible()
    expect(page.get_by_text("PENSTOCK_WORKER_LEASE_MS")).to_be_visible()
    expect(page.get_by_text("log.level")).to_have_count(0)
    axe(page)
    page.get_by_text("Dark", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    axe(page)
    narrow(page)
