"""The Chromium of the machine, for tests that look at the web app as a person does."""

from __future__ import annotations

import shutil

from tests.servers import install_from_apt, unavailable

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

FLAGS = [
    "--no-sandbox",  # it cannot have one as root, and it sees only our own pages
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str:
    """The path of the browser; without one the test is skipped."""
    found = _on_machine() or _from_apt()
    if not found:
        unavailable("no Chromium: install it (Debian: sudo apt-get install -y chromium)")
    return found


def _on_machine() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _from_apt() -> str | None:
    install_from_apt("--no-install-recommends", "chromium", "fonts-liberation")
    return _on_machine()
