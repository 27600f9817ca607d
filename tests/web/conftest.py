from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from tests.cli.commands import PATIENCE_S
from tests.product import Product
from tests.web.chromium import FLAGS, chromium
from tests.web.kit import ROOT, Faults

PATIENCE_MS = 30_000
"""A busy machine may take its time; what is there already is not waited for."""

VIEW = pytest.StashKey[tuple[Page, Faults, Path]]()
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test fails with the complaints of its page, and leaves a picture of it."""
    try:
        yield
        if VIEW in item.stash:
            _, faults, _ = item.stash[VIEW]
            assert not faults.unexpected(), "\n".join(faults.unexpected())
    except BaseException:
        item.stash[FAILED] = True
        if VIEW in item.stash:
            _explain(*item.stash[VIEW])
        raise


def _explain(page: Page, faults: Faults, picture: Path) -> None:
    print(f"the page was {page.url}", *faults.found, sep="\n")
    with contextlib.suppress(Error):  # the page may be gone
        page.screenshot(path=picture)
        print(f"it looked like {picture}")


@pytest.fixture(scope="session")
def built() -> None:
    """The web app as its sources are now."""
    done = subprocess.run([ROOT / "scripts/web.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="package")
def shared(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("web"))
    try:
        product.up()
        yield product
    finally:
        product.close()


@pytest.fixture(scope="module")
def product(shared: Product) -> Iterator[Product]:
    """One Penstock, with a worker, for all tests of the web app. Those of a module share what they made."""
    yield shared
    answer = shared.client.post("/bundle?mode=replace", json={"documents": []})  # else it would go on running
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = chromium()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE_S * 1000)
        yield browser
        browser.close()


@pytest.fixture
def faults() -> Faults:
    """What the page of this test complains about."""
    return Faults()


@pytest.fixture
def page(
    request: pytest.FixtureRequest, browser: Browser, product: Product, faults: Faults, tmp_path: Path
) -> Iterator[Page]:
    """A page of this test alone, as large as that of a laptop, with nothing stored and nothing in motion.

    If the test fails, documents are as they were before it: for its second attempt, and for other tests.
    """
    before = product.client.get("/bundle").json()
    context = browser.new_context(
        base_url=str(product.client.base_url),
        viewport={"width": 1440, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    faults.watch(page)
    request.node.stash[VIEW] = page, faults, tmp_path / "page.png"
    yield page
    context.close()
    if request.node.stash.get(FAILED, False):
        product.client.post("/bundle?mode=replace", json=before).raise_for_status()
        request.node.stash[FAILED] = False
