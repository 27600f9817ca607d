"""What a hand does in the builder."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.web.kit import goto, show_as


def part(page: Page, key: str) -> Locator:
    """The face of a part on the canvas, such as `step:0`."""
    return page.locator(f"[data-part='{key}']")


def open_sink(page: Page, key: str) -> None:
    """Show the form of a sink. A click is lost while the canvas is laid out again."""
    for patience_ms in (3_000, 10_000, 30_000):
        part(page, key).click()
        try:
            page.get_by_role("textbox", name="ID", exact=True).wait_for(timeout=patience_ms)
        except TimeoutError:
            if patience_ms == 30_000:
                raise
        else:
            return


def choose(page: Page, button: str, word: str) -> None:
    """Put on the canvas what is found first by a word."""
    page.get_by_role("button", name=button).press("Enter")  # by key: the canvas may just be making room
    search = page.get_by_role("dialog").get_by_role("textbox", name="Search")
    search.fill(word)
    expect(page.get_by_role("dialog").get_by_role("button", name=word).first).to_be_visible()
    search.press("Enter")
    expect(search).to_be_hidden()


def write(page: Page, label: str, code: str) -> None:
    """Replace what is in an editor."""
    editor = page.locator(".cm-content").and_(page.get_by_label(label))
    editor.focus()  # what it proposes may lie over it
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)


def fill(page: Page, path: str, value: str) -> None:
    """Type into the field at a place of the document."""
    field = page.locator(f'[data-path="{path}"] input').first
    field.fill(value)
    field.press("Tab")


def rename(page: Page, id: str) -> None:
    """Give the part whose form is shown another id."""
    field = page.get_by_role("textbox", name="ID", exact=True)
    field.fill(id)
    field.press("Enter")


def save_new(page: Page, id: str, name: str | None = None) -> None:
    """Save a new document. Its name is asked for, and its id is shown."""
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile("^Save (pipeline|task)$"))
    if name is not None:
        dialog.get_by_role("textbox", name="Name").fill(name)
    expect(dialog).to_contain_text(f"ID: {id} (can't be changed later)")
    dialog.get_by_role("button", name="Save").click()


def show(page: Page, mode: str) -> None:
    """Switch between the canvas and the text."""
    show_as(page, mode)


def text(page: Page) -> str:
    """What the editor of the whole document shows; the cursor goes to its end."""
    editor = page.locator(".cm-content").and_(page.get_by_label("Document as YAML"))
    editor.click()
    page.keyboard.press("Control+End")
    return "\n".join(editor.locator(".cm-line").all_inner_texts())


def begin_with(page: Page, document: str) -> None:
    """Open the builder with a document."""
    goto(page, "/pipelines/new")
    page.get_by_role("button", name="From YAML").click()
    write(page, "Document as YAML", document)
    page.get_by_role("button", name="Open", exact=True).click()
    expect(part(page, "source")).to_be_visible()


def drag(page: Page, what: Locator, onto: Locator) -> None:
    """Drag a part by the mouse a bit past another, in several moves as a hand does it."""
    start, end = at_rest(page, what, onto)
    page.mouse.move(*start)
    page.mouse.down()
    for tenth in range(1, 11):
        x, y = (a + (b - a) * tenth / 10 for a, b in zip(start, end, strict=True))
        page.mouse.move(x + 4, y)
    page.mouse.up()


def at_rest(page: Page, *parts: Locator) -> list[tuple[float, float]]:
    """The centres of parts once they no longer move: a canvas that opens fits its view some frames later."""
    found = [centre(each) for each in parts]
    for _ in range(50):
        page.wait_for_timeout(100)
        before, found = found, [centre(each) for each in parts]
        if found == before:
            return found
    raise AssertionError("the canvas keeps moving")


def centre(what: Locator) -> tuple[float, float]:
    box = what.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
