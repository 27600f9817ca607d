"""The documents of `penstock up --demo`: pipelines, streams, and a source that generates events."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from penstock.specs.text import read_path

HERE = Path(__file__).parent

BROKEN = "demo_broken"
"""The id of the pipeline that is invalid on purpose."""


def prepare(home: Path) -> list[dict[str, Any]]:
    """The demo's documents. Puts the file that one of them reads below `home`."""
    inbox = home / "demo" / "in"
    inbox.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "visits.csv", inbox / "visits.csv")
    return read_path(HERE)
