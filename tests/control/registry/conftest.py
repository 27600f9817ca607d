"""Every test that takes `registry` or `registry_url` runs on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.registry import Registry


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def registry_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/registry.db"
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def registry(registry_url: str) -> Iterator[Registry]:
    opened = Registry.open(registry_url)
    yield opened
    opened.close()
