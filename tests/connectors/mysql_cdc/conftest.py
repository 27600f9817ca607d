"""Tables of tests."""

from __future__ import annotations

import pytest

from tests.mariadb_server import MariaDB


@pytest.fixture
def table(mariadb_server: MariaDB, mariadb_database: str) -> str:
    """The name of a table with a key and two columns."""
    name = f"{mariadb_database}.things"
    mariadb_server.run(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    return name
