"""What tests of the web app do with a page: open a screen, look for faults, measure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, expect

ROOT = Path(__file__).parents[2]
WORKER_MS = 120_000
"""For what waits for a worker."""

_AXE = """async (rules) => {
    const ends = (motion) => motion.effect.getComputedTiming().endTime < Infinity
    await Promise.allSettled(document.getAnimations().filter(ends).map((motion) => motion.finished))
    const found = await axe.run(document, { resultTypes: ["violations"], ...(rules && { runOnly: rules }) })
    return found.violations.filter((each) => ["serious", "critical"].includes(each.impact))
}"""

_CHOSEN_THEME = "localStorage.getItem('mantine-color-scheme-value')"


@dataclass
class Faults:
    """What a page complained about. A test that provokes something says so with `allow`."""

    found: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """Expect complaints that this pattern is found in, such as `status of 422`."""
        self.allowed.append(pattern)

    def watch(self, page: Page) -> None:
        """Keep what goes wrong in a page from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error.stack or error.message}"))

    def unexpected(self) -> list[str]:
        """The complaints that nobody allowed."""
        return [each for each in self.found if not any(re.search(p, each) for p in self.allowed)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.found.append(f"console: {message.text} ({message.location.get('url')})")


def goto(page: Page, path: str) -> None:
    """Open a screen, such as `/streams`, and wait until it is there."""
    page.goto(f"/ui{path}")
    heading(page).wait_for()
    expect(page.locator(".mantine-Loader-root")).to_have_count(0)


def show_as(page: Page, view: str) -> None:
    """Switch a page with a form to another view: Form, Canvas or YAML."""
    group = page.get_by_role("radiogroup", name="View")
    for patience_ms in (2_000, 5_000, 30_000):
        group.get_by_text(view).click()
        try:
            expect(group.get_by_role("radio", name=view)).to_be_checked(timeout=patience_ms)
        except AssertionError:  # the page moved under the pointer, as a message above the form came or went
            if patience_ms == 30_000:
                raise
        else:
            return


def heading(page: Page) -> Any:
    """The title of the screen."""
    return page.get_by_role("main").get_by_role("heading", level=1)


def axe(page: Page) -> None:
    """Assert that nothing on the screen is a serious obstacle to people who see, hear or move otherwise.

    Colours are judged in the light and in the dark theme, unless the page was told to use one of them.
    """
    page.evaluate(_axe_script())  # not by a script element: the policy of the page would refuse it
    found = page.evaluate(_AXE)
    assert not found, "\n".join(map(_violation, found))
    if page.evaluate(_CHOSEN_THEME) not in (None, "auto"):
        return
    own = page.locator("html").get_attribute("data-mantine-color-scheme")
    other = "light" if own == "dark" else "dark"
    _use_theme(page, other)
    found = page.evaluate(_AXE, ["color-contrast"])
    assert not found, "\n".join([f"in the {other} theme:", *map(_violation, found)])
    _use_theme(page, str(own))


def narrow(page: Page) -> None:
    """Look at the screen as on a phone: once the frame has moved aside, nothing is cut off."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.documentElement.scrollWidth <= 390")


def transferred(page: Page) -> dict[str, int]:
    """The bytes that came over the wire for what the page has loaded so far, by path."""
    entries = page.evaluate(
        """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
            .map((entry) => [new URL(entry.name).pathname, entry.transferSize])"""
    )
    return {str(path): int(size) for path, size in entries}


def _use_theme(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)


@cache
def _axe_script() -> str:
    return (ROOT / "web/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def _violation(found: dict[str, Any]) -> str:
    places = [
        f"    {node['target']}: {node['failureSummary']}\n    {node['html']}" for node in found["nodes"]
    ]
    return "\n".join([f"{found['impact']} {found['id']}: {found['help']}", *places])
