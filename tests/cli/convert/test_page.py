"""The example of docs/convert.md is what the command does."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.cli.convert.command import Name
from penstock.cli.convert.systems import SYSTEMS
from tests.cli.conftest import Command

PAGE = Path(__file__).parents[3] / "docs" / "convert.md"


def test_the_example(in_process: Command, tmp_path: Path) -> None:
    page = PAGE.read_text()
    given, written, told = re.findall(r"^```(?:yaml)?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "orders.yaml").write_text(given)
    done = in_process("convert", "orders.yaml", "--schema", "id BIGINT, amount DOUBLE, note STRING")
    assert done.exit_code == 1
    assert done.stdout == written
    assert done.stderr == told


def test_the_page_and_the_option_name_every_system() -> None:
    assert set(Name.__args__) == set(SYSTEMS)  # type: ignore[attr-defined]
    assert all(f"`{name}`" in PAGE.read_text() for name in SYSTEMS)
