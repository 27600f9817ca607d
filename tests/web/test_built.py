"""The app as it was built, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.api.web_files import BUILT
from tests.api.kit import open_service, running

pytestmark = pytest.mark.slow

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}


def test_every_file_of_the_build_is_served(built: None, tmp_path: Path) -> None:
    files = [path for path in BUILT.rglob("*") if path.suffix in TYPES]
    assert len(files) > 10, "screens load on demand"
    with open_service(tmp_path) as service, running(service) as found:
        for path in files:
            address = f"/ui/{path.relative_to(BUILT).as_posix()}"
            answer = found.client.get(address, headers={"Accept-Encoding": "gzip"})
            assert answer.content == path.read_bytes(), address
            assert answer.headers["content-type"] == TYPES[path.suffix], address
            assert answer.headers["content-encoding"] == "gzip", address


def test_the_page_loads_only_what_it_may(built: None) -> None:
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]* src=)", page) == [], "the policy forbids scripts in the page"
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    for address in addresses:
        assert (BUILT / address.removeprefix("/ui/")).is_file(), address
