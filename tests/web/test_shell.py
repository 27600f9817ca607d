"""The frame around every screen, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.kit import Faults, axe, goto, heading, narrow, transferred

pytestmark = pytest.mark.slow

SCREENS = {
    "Overview": "/",
    "Topology": "/topology",
    "Pipelines": "/pipelines",
    "Streams": "/streams",
    "SQL console": "/sql",
    "Sources": "/sources",
    "Tasks": "/tasks",
    "Sinks": "/sinks",
    "Secrets": "/secrets",
    "Logs": "/logs",
    "Workers": "/workers",
    "Settings": "/settings",
}
LARGEST_FIRST_LOAD = 400_000
"""Bytes as they are transferred, so packed, until the first screen is there."""


def test_the_address_of_the_server_opens_the_app(page: Page) -> None:
    page.goto("/")
    expect(heading(page)).to_have_text("Overview")
    expect(page).to_have_url(re.compile(r"/ui/$"))
    expect(page).to_have_title("Overview · Penstock")


def test_every_screen_is_one_click_away(page: Page) -> None:
    goto(page, "/")
    navigation = page.get_by_role("navigation", name="Main")
    for name, path in SCREENS.items():
        navigation.get_by_role("link", name=name, exact=True).click()
        expect(heading(page)).to_have_text(name)
        expect(page).to_have_url(re.compile(f"/ui{path.rstrip('/')}/?$"))
        expect(navigation.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
    page.go_back()
    expect(heading(page)).to_have_text(list(SCREENS)[-2])


FORMS = ("/streams/new", "/pipelines/new", "/tasks/new", "/sources/new", "/sinks/new")


@pytest.mark.parametrize("path", [*SCREENS.values(), *FORMS, "/tokens", "/nowhere"])
def test_every_screen_is_accessible_and_fits_a_phone(page: Page, path: str) -> None:
    goto(page, path)
    axe(page)
    narrow(page)


def test_the_theme_follows_the_system_until_somebody_chooses(page: Page) -> None:
    goto(page, "/streams")
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_role("button", name="Use the dark theme").click()
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    page.get_by_role("button", name="Use the light theme").click()
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")


def test_the_palette_goes_anywhere_by_keyboard(page: Page) -> None:
    goto(page, "/")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("textbox").fill("streams")
    page.keyboard.press("Enter")  # the first of several matches
    expect(page).to_have_url(re.compile("/ui/streams$"))


def test_the_first_screen_is_small(page: Page) -> None:
    goto(page, "/")
    sizes = transferred(page)
    scripts = [path for path in sizes if path.endswith(".js")]
    assert scripts
    assert all(sizes.values()), f"nothing of it was stored before: {sizes}"
    assert sum(sizes.values()) < LARGEST_FIRST_LOAD, sizes


def test_an_address_that_leads_nowhere_says_so(page: Page) -> None:
    goto(page, "/nowhere")
    page.get_by_role("main").get_by_role("link").first.click()
    expect(heading(page)).to_be_visible()


def test_a_fault_in_a_page_is_a_failure_of_the_test(page: Page, faults: Faults) -> None:
    faults.allow("on purpose")
    goto(page, "/")
    page.evaluate("console.error('on purpose'); setTimeout(() => { throw new Error('on purpose') })")
    page.wait_for_timeout(100)
    assert len(faults.found) >= 2
    assert faults.unexpected() == []
    faults.allowed.clear()
    assert len(faults.unexpected()) == len(faults.found)
    faults.found.clear()
