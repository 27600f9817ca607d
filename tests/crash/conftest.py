from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.product import Product


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory, broker_port: int) -> Iterator[Product]:
    settings = {"PENSTOCK_KAFKA_BROKERS": f"127.0.0.1:{broker_port}", "PENSTOCK_KAFKA_REPLICATION": "1"}
    found = Product(tmp_path_factory.mktemp("product"), env=settings)
    yield found
    found.close()


@pytest.fixture
def product(shared: Product) -> Product:
    """The one product of these tests; up, whatever an earlier one has done to it."""
    if shared.process is None or shared.process.poll() is not None:
        shared.up()
    return shared
