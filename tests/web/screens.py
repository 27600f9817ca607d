"""Takes the pictures of the docs again: python -m tests.web.screens

With a directory it takes every screen, in three sizes, light and dark, for somebody to look at. A real
Penstock runs a small shop (shop.yaml) meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.cli.commands import wait_for
from tests.product import Product
from tests.web.chromium import FLAGS, chromium
from tests.web.kit import ROOT, goto

IMAGES = ROOT / "docs" / "images"
SHOP = Path(__file__).with_name("shop.yaml")
SMALL = {"width": 390, "height": 844}
LARGE = {"width": 1440, "height": 900}
WIDE = {"width": 1920, "height": 1080}

SCREENS = {
    "overview": "/",
    "topology": "/topology",
    "pipelines": "/pipelines",
    "streams": "/streams",
    "stream-form": "/streams/new",
    "stream": "/streams/orders",
    "tail": "/streams/orders?tab=live",
    "browse": "/streams/orders?tab=browse",
    "console": "/sql",
    "gallery": "/pipelines/new",
    "builder": "/pipelines/price_orders/edit?at=spec.processors[0].query",
    "pipeline": "/pipelines/price_orders",
    "dead-letters": "/pipelines/price_orders?tab=letters",
    "batches": "/pipelines/price_orders?tab=batches",
    "story": "/pipelines/price_orders?tab=story&offset=49",
    "revisions": "/pipelines/price_orders?tab=revisions",
    "test": "/pipelines/price_orders?tab=test",
    "send": "/sources/refunds?tab=send",
    "logs": "/logs",
    "workers": "/workers",
    "settings": "/settings",
}


def main(directory: Path | None = None) -> None:
    """Take the screens that the docs show, or all of them."""
    wanted = None if directory else {picture.stem for picture in IMAGES.glob("*.png")}
    directory = directory or IMAGES
    subprocess.run([ROOT / "scripts/web.sh"], check=True)
    directory.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        product = Product(Path(home))
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            product.up()
            _open_shop(product)
            for size, view in (("large", LARGE), ("wide", WIDE), ("small", SMALL)):
                for scheme in ("light", "dark"):
                    page = _page(browser, product, view, scheme)
                    for name, path in SCREENS.items():
                        picture = f"{name}-{size}-{scheme}"
                        if wanted is None or picture in wanted:
                            _take(page, path, directory / f"{picture}.png")
                    page.context.close()
        finally:
            browser.close()
            product.close()


def _open_shop(product: Product) -> None:
    answer = product.client.post("/bundle", content=SHOP.read_text())
    assert answer.status_code == 200, answer.text
    wait_for("revenue", lambda: product.client.get("/streams/revenue/stats").json()["events"] > 0, 240)
    change = {"spec": {"batch": {"max_ms": 500}}}
    assert product.client.patch("/pipelines/price_orders", json=change).is_success
    time.sleep(60)  # so that the charts have something to show


def _take(page: Page, path: str, picture: Path) -> None:
    goto(page, path)
    page.wait_for_timeout(2_500)  # charts and editors draw themselves
    page.screenshot(path=picture)
    print(picture.stem, flush=True)


def _page(browser: Browser, product: Product, view: dict[str, int], scheme: str) -> Page:
    context = browser.new_context(
        base_url=str(product.client.base_url),
        viewport=view,  # type: ignore[arg-type]
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    return context.new_page()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
