from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from penstock.control.registry import Registry
from penstock.control.service import Service
from penstock.settings import Settings, load
from tests.api.kit import Api, judging, running


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("api")
    return load({"home": home, "port": 0}, env={}, cwd=home).settings


@pytest.fixture(scope="session")
def service(settings: Settings) -> Iterator[Service]:
    registry = Registry.open(settings.registry_url)
    yield Service(settings, registry)
    registry.close()


@pytest.fixture(scope="session")
def server(service: Service) -> Iterator[Api]:
    with judging(service), running(service) as found:
        yield found


@pytest.fixture
def api(server: Api) -> Iterator[Api]:
    """A server whose worker judges documents but runs nothing, with no documents."""
    yield server
    server.service.registry.apply_import([], "replace")


@pytest.fixture
def client(api: Api) -> httpx.Client:
    return api.client
