"""Databases and logs of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_cdc_log import Log
from tests.postgres_cdc_place import Place
from tests.postgres_cdc_server import ReplicatingPostgres


@pytest.fixture
def place(replicating: ReplicatingPostgres) -> Iterator[Place]:
    with replicating.database() as name, replicating.connect(name) as sql:
        yield Place(replicating, name, sql)


@pytest.fixture
def logs() -> Iterator[list[Log]]:
    made: list[Log] = []
    yield made
    for log in made:
        log.close()
