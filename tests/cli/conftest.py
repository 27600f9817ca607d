from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import Penstock


@pytest.fixture
def penstock(tmp_path: Path) -> Iterator[Penstock]:
    """The command in an empty directory."""
    runner = Penstock(tmp_path)
    yield runner
    runner.kill_everything()
