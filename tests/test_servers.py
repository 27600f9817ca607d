import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mariadb_server import MariaDB
from tests.servers import connect, unavailable


def test_a_missing_server_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_TEST_STRICT", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no server"):
        unavailable("no server")


def test_a_missing_server_fails_where_nothing_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_STRICT", "1")
    with pytest.raises(pytest.fail.Exception, match="no server"):
        unavailable("no server")


def test_postgres_answers(postgres_url: str) -> None:
    with connect(postgres_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_postgres_database_is_empty(postgres_database: str, attempt: int) -> None:
    with connect(postgres_database) as connection:
        connection.execute("CREATE TABLE only_here (id INT)")


def test_mariadb_writes_a_binary_log_of_rows(mariadb_server: MariaDB, mariadb_database: str) -> None:
    mariadb_server.run("CREATE TABLE only_here (id INT)", database=mariadb_database)
    rows = mariadb_server.run("SHOW VARIABLES LIKE 'binlog_%'")
    found = dict(rows)
    assert found["binlog_format"] == "ROW"
    assert found["binlog_row_image"] == "FULL"
    assert found["binlog_row_metadata"] == "FULL"
    assert mariadb_server.run("SELECT @@log_bin, @@gtid_strict_mode, @@server_id") == [(1, 1, 1)]


@pytest.mark.slow
def test_postgres_does_not_outlive_a_killed_test_process(postgres_url: str) -> None:
    script = "from tests.servers import postgres\nwith postgres() as url:\n print(url, flush=True)\n input()"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    url = process.stdout.readline().strip()
    connect(url).close()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            connect(url).close()
        except Exception:
            return
        time.sleep(0.1)
    pytest.fail("PostgreSQL still answers")


def test_shared_fixtures_end_with_their_directory() -> None:
    """Without `__init__.py` a fixture of scope `package`, such as a browser, lasts for the session."""
    for found in Path(__file__).parent.rglob("conftest.py"):
        if 'scope="package"' in found.read_text():
            assert found.with_name("__init__.py").exists(), found
