"""People with roles in a real browser: set-up, login, a viewer's pages, tokens and the audit log."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from penstock.api.app import create_app
from penstock.api.server import Server
from penstock.control.access.access import Access
from tests.api.kit import judging, open_service, pipeline, stream
from tests.web.conftest import PATIENCE_MS, VIEW
from tests.web.kit import Faults, axe, goto, heading

pytestmark = pytest.mark.slow

PASSWORD = "correct horse"
ADMIN_SCREENS = ("/users", "/tokens", "/audit", "/settings")


@dataclass(frozen=True)
class Site:
    """A server without workers that people have to log in to, though there is no user yet."""

    url: str
    access: Access

    def client(self, secret: str) -> httpx.Client:
        """A program with a token."""
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=60)


@pytest.fixture
def site(built: None, tmp_path: Path) -> Iterator[Site]:
    with open_service(tmp_path / "home", **{"auth.mode": "on"}) as service, judging(service):
        app, ready = create_app(service), threading.Event()
        server = Server(app, service.settings, lambda _: ready.set())
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            assert ready.wait(60)
            yield Site(server.url, app.state.access)
        finally:
            server.stop()
            thread.join(60)


@pytest.fixture
def page(
    request: pytest.FixtureRequest, browser: Browser, site: Site, faults: Faults, tmp_path: Path
) -> Iterator[Page]:
    """A page of a browser that has never been here."""
    context = browser.new_context(
        base_url=site.url,
        viewport={"width": 1440, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    faults.watch(page)
    faults.allow("status of 401")  # a wrong password, and sessions that have ended
    request.node.stash[VIEW] = page, faults, tmp_path / "page.png"
    yield page
    context.close()


def test_from_the_set_up_link_to_the_audit_log(page: Page, site: Site, faults: Faults) -> None:
    faults.allow("status of 409")  # the last admin stays
    _documents(site)
    page.goto("/ui/streams")
    expect(page.get_by_text("This server has no user yet.")).to_be_visible()
    axe(page)

    page.goto(f"/ui/setup#{site.access.new_setup_secret()}")
    expect(page).to_have_url(re.compile("/ui/setup$"))
    page.get_by_label("Name").fill("anna")
    page.locator("[name=new-password]").fill(PASSWORD)
    page.locator("[name=new-password-again]").fill(PASSWORD)
    axe(page)
    page.get_by_role("button", name="Create the admin").click()
    expect(heading(page)).to_have_text("Overview")

    _add_viewer(page)
    for screen in ADMIN_SCREENS:
        goto(page, screen)
        axe(page)
    goto(page, "/pipelines/orders")
    expect(page.get_by_role("link", name="Edit")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()

    page.get_by_role("button", name="Account of anna").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(page).to_have_url(re.compile("/ui/login$"))
    page.goto("/ui/pipelines/orders?tab=revisions")
    _log_in(page, "vera", "a wrong guess")
    expect(page.get_by_role("alert")).to_contain_text("the name or the password is wrong")
    axe(page)
    _log_in(page, "vera", PASSWORD)
    expect(page).to_have_url(re.compile(r"/ui/pipelines/orders\?tab=revisions$"))

    _expect_to_read_only(page)
    secret = _make_token(page)
    with site.client(secret) as program:
        assert program.get("/streams").status_code == 200
        assert program.post("/streams", json=stream("mine")).status_code == 403

    page.context.clear_cookies()  # as if the session had ended
    page.get_by_role("link", name="Pipelines").click()
    _log_in(page, "anna", PASSWORD)
    expect(heading(page)).to_have_text("Pipelines")
    _expect_in_audit_log(page)


def test_a_session_that_ends_stops_live_pages_and_the_next_one_resumes_them(page: Page, site: Site) -> None:
    site.access.users.add("anna", "admin", PASSWORD)
    page.goto("/ui/")
    _log_in(page, "anna", PASSWORD)
    expect(heading(page)).to_have_text("Overview")
    site.access.users.change("anna", password=PASSWORD)  # ends all sessions; the overview only follows
    site.access.forget()
    expect(page).to_have_url(re.compile("/ui/login$"))
    _log_in(page, "anna", PASSWORD)
    expect(heading(page)).to_have_text("Overview")
    token = site.access.tokens.make("test", "editor", user="anna")[1]
    with site.client(token) as program:
        goto(page, "/streams")
        assert program.post("/streams", json=stream("late one")).status_code == 201
    expect(page.get_by_text("late_one").first).to_be_visible()


def _documents(site: Site) -> None:
    token = site.access.tokens.make("test", "admin", user=None)[1]
    with site.client(token) as program:
        for place, document in (("streams", stream("clicks")), ("pipelines", pipeline("orders"))):
            answer = program.post(f"/{place}", json=document)
            assert answer.status_code == 201, answer.text


def _log_in(page: Page, name: str, password: str) -> None:
    page.locator("[name=password]").wait_for()  # the page before may have a field for names, too
    page.get_by_label("Name").fill(name)
    page.locator("[name=password]").fill(password)
    page.get_by_role("button", name="Log in").click()


def _add_viewer(page: Page) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Users").click()
    page.get_by_role("button", name="Add a user").click()
    dialog = page.get_by_role("dialog", name="Add a user")
    dialog.get_by_label("Name").fill("vera")
    dialog.locator("[name=new-password]").fill(PASSWORD)
    dialog.locator("[name=new-password-again]").fill(PASSWORD)
    axe(page)
    dialog.get_by_role("button", name="Add").click()
    row = page.get_by_role("row").filter(has_text="vera")
    expect(row).to_contain_text("viewer")
    page.get_by_role("button", name="Actions of anna").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete anna?")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).to_contain_text("last_admin")
    dialog.get_by_role("button", name="Cancel").click()


def _expect_to_read_only(page: Page) -> None:
    main = page.get_by_role("main")
    expect(main.get_by_role("tab", name="Revisions")).to_be_visible()
    expect(main.get_by_role("tab", name="Test")).to_have_count(0)
    for name in ("Edit", "Resume", "Stop", "More actions"):
        expect(main.get_by_role("button", name=name).or_(main.get_by_role("link", name=name))).to_have_count(
            0
        )
    goto(page, "/pipelines")
    expect(page.get_by_role("button", name="View orders")).to_be_visible()
    expect(page.get_by_role("button", name="Delete orders")).to_have_count(0)
    expect(page.get_by_role("link", name="Create")).to_have_count(0)
    goto(page, "/pipelines/new")
    expect(page.get_by_text("This page needs the role editor")).to_be_visible()
    navigation = page.get_by_role("navigation", name="Main")
    expect(navigation.get_by_role("link", name="Users")).to_have_count(0)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog")
    palette.get_by_role("textbox").fill("create")
    expect(palette.get_by_text("No matches.")).to_be_visible()
    page.keyboard.press("Escape")


def _make_token(page: Page) -> str:
    page.get_by_role("button", name="Account of vera").click()
    page.get_by_role("menuitem", name="My tokens").click()
    page.get_by_role("button", name="Create a token").click()
    dialog = page.get_by_role("dialog", name="Create a token")
    dialog.get_by_label("Name").fill("report")
    axe(page)
    dialog.get_by_role("button", name="Create").click()
    secret = page.get_by_label("The token").inner_text()
    axe(page)
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row").filter(has_text="report")).to_contain_text("viewer")
    return secret


def _expect_in_audit_log(page: Page) -> None:
    goto(page, "/audit")
    made = page.get_by_role("row").filter(has_text="token.create")
    expect(made).to_contain_text("vera")
    page.get_by_role("combobox", name="Action").fill("user.create")
    page.keyboard.press("Tab")  # closes the suggestions
    rows = page.get_by_role("row").filter(has_text="user.create")
    expect(rows).to_have_count(1)
    rows.get_by_role("button").click()
    drawer = page.get_by_role("dialog", name="user.create user/vera")
    expect(drawer.get_by_label("After")).to_contain_text("role: viewer")
    axe(page)
