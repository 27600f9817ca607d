from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.control.documents import service as service_module
from penstock.control.documents.service import Service
from penstock.control.fleet.control import database_control
from penstock.control.fleet.worker import Worker
from penstock.control.registry import Registry
from penstock.settings import load


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits wait for as long as it takes."""
    monkeypatch.setattr(service_module, "PROOF_S", 180.0)


@pytest.fixture
def staff(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Service, Worker]]:
    """A registry, a coordinator and a worker that shares the Spark session of the tests."""
    overrides = {"home": tmp_path / "home", "worker.drain_ms": 10_000, "worker.starts": 1}
    loaded = load({**overrides, "policy.paths": [str(tmp_path)]}, env={}, cwd=tmp_path)
    registry = Registry.open(loaded.settings.registry_url)
    service = Service(loaded, registry)
    worker = Worker(loaded.settings, database_control(loaded.settings, registry), spark)
    thread = threading.Thread(target=worker.run)
    thread.start()
    service.coordinator.start()
    yield service, worker
    worker.stop()
    thread.join(60)
    assert not thread.is_alive()
    service.coordinator.stop()
    registry.close()


@pytest.fixture
def service(staff: tuple[Service, Worker]) -> Service:
    """A service with a worker."""
    return staff[0]
