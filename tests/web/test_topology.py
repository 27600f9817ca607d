"""The topology, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.kit import axe, goto, heading

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop(product: Product) -> None:
    """A pipeline into a stream, another one from it, and one apart; events flow only where they should."""
    generate = {"type": "generate", "rate": 20, "row": {"id": "seq"}}
    create(product, "streams", "shop orders", {"schema": "id BIGINT"})
    into = [{"id": "orders", "type": "stream", "stream": "shop_orders"}]
    create(product, "pipelines", "shop intake", {"source": generate, "sinks": into}, "active", team="shop")
    read = {"type": "stream", "stream": "shop_orders"}
    drop = [{"id": "nothing", "type": "drop"}]
    create(product, "pipelines", "shop export", {"source": read, "sinks": drop}, "paused")
    create(product, "pipelines", "apart", {"source": generate, "sinks": drop}, "paused")
    wait_for("events to flow", lambda: product.client.get("/overview").json()["totals"]["out_rate"] > 0)


def create(
    product: Product, place: str, name: str, spec: object, status: str | None = None, **labels: str
) -> None:
    document = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    answer = product.client.post(f"/{place}", json={**document, **({"status": status} if status else {})})
    assert answer.status_code == 201, answer.text


def node(page: Page, key: str) -> Locator:
    return page.locator(f'[data-key="{key}"]')


def dimmed(page: Page, key: str) -> Locator:
    return page.locator("[data-dim]").filter(has=node(page, key))


@pytest.mark.usefixtures("shop")
def test_events_are_seen_flowing_and_a_path_is_seen_at_a_glance(page: Page) -> None:
    goto(page, "/topology")
    expect(node(page, "Pipeline/shop_intake")).to_contain_text(re.compile(r"[1-9]\d*(\.\d)?/s"))
    rates = page.locator('[data-state="well"]').filter(has_text=re.compile("/s"))
    expect(rates.first).to_be_visible()
    expect(page.locator("[data-sparkline]").first).to_be_visible()
    axe(page)

    node(page, "Stream/shop_orders").hover()
    expect(dimmed(page, "Pipeline/apart")).to_be_visible()
    expect(dimmed(page, "Pipeline/shop_export")).to_have_count(0)
    expect(dimmed(page, "Pipeline/shop_intake#source")).to_have_count(0)


@pytest.mark.usefixtures("shop")
def test_one_is_found_followed_and_opened_with_the_keyboard(page: Page) -> None:
    goto(page, "/topology")
    finder = page.get_by_role("combobox", name="Find in the graph")
    finder.fill("shop intake (")
    finder.press("ArrowDown")
    finder.press("Enter")
    expect(page.locator("[data-found]")).to_contain_text("shop intake")
    node(page, "Pipeline/shop_intake").focus()
    page.keyboard.press("ArrowRight")
    expect(node(page, "Stream/shop_orders")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(page, "Pipeline/shop_export")).to_be_focused()
    page.keyboard.press("Enter")
    expect(heading(page)).to_contain_text("shop export")


@pytest.mark.usefixtures("shop")
def test_less_is_shown_on_request_and_the_address_keeps_it(page: Page) -> None:
    goto(page, "/topology")
    node(page, "Stream/shop_orders").hover()
    page.get_by_role("button", name="Show only documents connected to shop orders").click()
    expect(node(page, "Pipeline/apart")).to_have_count(0)
    expect(node(page, "Pipeline/shop_intake#source")).to_be_visible()
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("Show sources and sinks inside pipelines").click(force=True)
    expect(node(page, "Pipeline/shop_intake#source")).to_have_count(0)
    axe(page)
    page.reload()
    expect(node(page, "Pipeline/shop_intake")).to_be_visible()
    expect(node(page, "Pipeline/apart")).to_have_count(0)
    page.get_by_role("button", name="Show all documents").click()
    expect(node(page, "Pipeline/apart")).to_be_visible()


@pytest.mark.usefixtures("shop")
def test_a_small_screen_gets_the_same_as_a_list(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    goto(page, "/topology")
    rows = page.get_by_role("list", name="Documents and their connections").get_by_role("listitem")
    orders = rows.filter(has_text=re.compile("^shop orders"))
    expect(orders.get_by_role("link", name="shop intake")).to_be_visible()
    expect(orders.get_by_role("link", name="shop export")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    axe(page)
    page.get_by_label("Find in the list").fill("apart")
    expect(rows).to_have_count(1)
