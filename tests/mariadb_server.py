"""A MariaDB server for tests: one process on a loopback port, with a binary log of rows."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers import LEASH, free_port, install_from_apt, unavailable

if TYPE_CHECKING:
    import pymysql

USER, PASSWORD = "penstock", "pen:st/ock@1"
"""A password that has to be quoted in a URL."""

BINLOG = (
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--server-id=1",
    "--gtid-strict-mode=ON",
)
"""What change data capture needs of a server."""

QUICK = (
    # A commit survives that the server is killed, and need not survive a power cut.
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--performance-schema=OFF",
    "--skip-name-resolve",
)


@dataclass
class MariaDB:
    """A server of MariaDB, started with `options`."""

    home: Path
    port: int
    options: Sequence[str] = BINLOG
    process: subprocess.Popen[bytes] | None = None
    _user: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    def url(self, database: str = "test") -> str:
        """The address of a database, with its user and the quoted password."""
        from urllib.parse import quote

        return f"mysql://{USER}:{quote(PASSWORD, safe='')}@{self.address}/{database}"

    def connect(self, database: str | None = None, **settings: Any) -> pymysql.Connection[Any]:
        """An autocommit connection with all rights."""
        import pymysql

        wanted: dict[str, Any] = {"user": USER, "password": PASSWORD, "autocommit": True, **settings}
        return pymysql.connect(host="127.0.0.1", port=self.port, database=database, **wanted)

    def run(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements; gives the rows of the last one."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of an empty database, dropped at the end."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        try:
            yield name
        finally:
            self.run(f"DROP DATABASE IF EXISTS {name}")

    def start(self) -> None:
        """Start the server, or start it again with all that it had."""
        server = [
            _needed("mariadbd", "mysqld"),
            "--no-defaults",
            f"--datadir={self.home / 'data'}",
            f"--tmpdir={self.home}",
            f"--socket={self.home / 'socket'}",
            f"--pid-file={self.home / 'pid'}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            *QUICK,
            *self.options,
        ]
        with (self.home / "log").open("ab") as output:
            self.process = subprocess.Popen(
                ["sh", "-c", LEASH.replace("-INT", "-TERM"), "sh", self.home, *server],
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._user,
            )
        self._await()

    def kill(self) -> None:
        """Kill the server as a crash would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def install(self) -> None:
        """Make the data directory with an empty database `test` and the user."""
        made = subprocess.run(
            [
                _needed("mariadb-install-db", "mysql_install_db"),
                "--no-defaults",
                f"--datadir={self.home / 'data'}",
                # A server that starts removes all temporary tables in its directory, also those of others.
                f"--tmpdir={self.home}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ],
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            **self._user,
        )
        if made.returncode:
            unavailable(f"MariaDB did not initialise: {made.stdout}{made.stderr}")

    def make_user(self) -> None:
        """Make the user of the tests, who may do everything, and the database `test`."""
        with self.connect(user="root", password="") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION")
            cursor.execute("CREATE DATABASE test CHARACTER SET utf8mb4")

    def _await(self) -> None:
        import pymysql

        assert self.process is not None
        until = time.monotonic() + 60
        while True:
            try:
                self.connect(user="nobody", password="").close()
            except pymysql.OperationalError as error:
                if error.args[0] == 1045:  # access denied: it answers
                    return
                if self.process.poll() is not None or time.monotonic() > until:
                    unavailable(f"MariaDB did not start: {(self.home / 'log').read_text()[-3000:]}")
                time.sleep(0.1)


def _needed(*names: str) -> str:
    """The path of the first program that the machine has, or can get."""
    for attempt in ("as it is", "with the package"):
        for name in names:
            if found := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"):
                return found
        if attempt == "as it is":
            install_from_apt("mariadb-server")
    unavailable("no MariaDB server: install it (Debian: sudo apt-get install -y mariadb-server)")


def _unprivileged() -> dict[str, Any]:
    """Arguments of `subprocess` that leave root behind: MariaDB refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("mysql", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    unavailable("MariaDB does not run as root, and this machine has no user to run it as")


@contextmanager
def mariadb(options: Sequence[str] = BINLOG) -> Iterator[MariaDB]:
    """A server on a loopback port; stopped at the end."""
    _needed("mariadbd", "mysqld")  # its package makes the user that it runs as
    who = _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="penstock-mariadb-"))
    if who:
        os.chown(home, who["user"], who["group"])
    made = MariaDB(home, free_port(), options, _user=who)
    try:
        made.install()
        made.start()
        made.make_user()
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.communicate(timeout=60)
        shutil.rmtree(home, ignore_errors=True)
