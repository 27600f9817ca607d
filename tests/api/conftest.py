from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from penstock.control.documents.service import Service
from tests.api.kit import Api, judging, open_service, running, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of this test alone, without a worker."""
    with open_service(tmp_path) as found:
        yield found


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with (
        open_service(tmp_path_factory.mktemp("api")) as service,
        judging(service),
        running(service) as found,
    ):
        yield found


@pytest.fixture
def api(server: Api) -> Iterator[Api]:
    """A server whose worker judges documents but runs nothing, with no documents."""
    yield server
    server.service.import_([], "replace", dry_run=False)


@pytest.fixture(scope="package")
def working_server(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Api]:
    with (
        open_service(tmp_path_factory.mktemp("live")) as service,
        working(service, spark),
        running(service) as found,
    ):
        deadline = time.monotonic() + 60
        while not service.readiness().ready:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield found


@pytest.fixture
def live(working_server: Api) -> Iterator[Api]:
    """A server with a worker that runs pipelines; those of a test end with it."""
    yield working_server
    working_server.service.import_([], "replace", dry_run=False)


@pytest.fixture
def client(api: Api) -> httpx.Client:
    return api.client


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A file in the place of a directory: a sink that writes below it fails until it is removed."""
    file = tmp_path / "file"
    file.write_text("in the way")
    return file
