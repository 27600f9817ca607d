"""Time until the topology is usable in a browser: `python -m bench.topology [DOCUMENTS]`.

Most documents are streams without readers; a tenth are paused pipelines between two streams. The time is
measured from the navigation until a document is found by a search and centered.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.product import Product
from tests.web.chromium import FLAGS, chromium

RUNS = 5


def documents(count: int) -> list[dict[str, object]]:
    """Streams, and a pipeline between two of them for every tenth document."""
    flows = count // 10
    streams = [
        {"kind": "Stream", "metadata": {"name": f"stream {i:04d}"}, "spec": {}} for i in range(count - flows)
    ]
    pipelines = [
        {
            "kind": "Pipeline",
            "metadata": {"name": f"flow {i:04d}"},
            "spec": {
                "source": {"type": "stream", "stream": f"stream_{2 * i:04d}"},
                "sinks": [{"id": "out", "type": "stream", "stream": f"stream_{2 * i + 1:04d}"}],
            },
            "status": "paused",
        }
        for i in range(flows)
    ]
    return [*streams, *pipelines]


def seconds(page: Page, url: str) -> tuple[float, float]:
    """Seconds until nodes are drawn, and until a node is found by a search."""
    began = time.perf_counter()
    page.goto(f"{url}/ui/topology")
    page.locator("[data-key]").first.wait_for()
    drawn = time.perf_counter() - began
    finder = page.get_by_role("combobox", name="Find in the graph")
    finder.fill("flow 0007")
    page.get_by_role("option").first.click()
    page.locator("[data-found]").wait_for()
    return drawn, time.perf_counter() - began


def main() -> None:
    """Measure, and print the medians."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    product = Product(Path(tempfile.mkdtemp()))
    try:
        product.up()
        url = str(product.client.base_url)
        body = {"documents": documents(count)}
        product.client.post("/bundle", json=body, timeout=300).raise_for_status()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            seconds(page, url)  # the first run also fills the caches of the browser
            found = [seconds(page, url) for _ in range(RUNS)]
            browser.close()
        drawn, usable = (statistics.median(each) for each in zip(*found, strict=True))
        print(f"{count} documents: drawn after {drawn:.2f} s, one is found after {usable:.2f} s")
    finally:
        product.close()


if __name__ == "__main__":
    main()
