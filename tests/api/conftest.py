from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from penstock.control.registry import Registry
from penstock.control.service import Service
from penstock.settings import Settings, load
from tests.api.kit import Api, judging, running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({"home": tmp_path / "home", "port": 0}, env={}, cwd=tmp_path).settings


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    registry = Registry.open(settings.registry_url)
    yield Service(settings, registry)
    registry.close()


@pytest.fixture
def api(settings: Settings, service: Service) -> Iterator[Api]:
    """A server whose worker judges documents but runs nothing."""
    with judging(settings, service.registry, service), running(service) as found:
        yield found


@pytest.fixture
def client(api: Api) -> httpx.Client:
    return api.client
