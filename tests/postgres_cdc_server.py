"""A PostgreSQL that replicates, for tests: it can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.servers import LEASH, free_port, postgres_binaries, unavailable, unprivileged

USER, PASSWORD = "replicator", "sec'ret"
SETTINGS = ("wal_level=logical", "max_replication_slots=40", "max_wal_senders=40", "max_connections=100")
HBA = "local all all trust\nhost all replicator 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


@dataclass
class ReplicatingPostgres:
    """A running server."""

    home: Path
    binaries: Path
    port: int
    who: dict[str, Any] = field(default_factory=unprivileged)
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", user: str = "penstock") -> str:
        """The address of a database, for a user without a password."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """An autocommit connection."""
        return psycopg.connect(self.url(database), autocommit=True)

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new database; its slots are dropped with it."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with self.connect() as server:
            server.execute(f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            with self.connect() as server:
                server.execute(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                    "WHERE database = %s AND active",
                    (name,),
                )
                self._drop_slots(server, name)
                server.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _drop_slots(self, server: psycopg.Connection[Any], database: str) -> None:
        until = time.monotonic() + 20
        query = "SELECT slot_name, active FROM pg_replication_slots WHERE database = %s"
        while slots := server.execute(query, (database,)).fetchall():
            assert time.monotonic() < until, f"slots that cannot be dropped: {slots}"
            for name, active in slots:
                if not active:
                    server.execute("SELECT pg_drop_replication_slot(%s)", (name,))
            time.sleep(0.05)

    def start(self) -> None:
        """Start the server, or start it again with all that it had."""
        server = [self.binaries / "postgres", "-D", self.home / "data", "-k", self.home, "-h", "127.0.0.1"]
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        with (self.home / "log").open("ab") as output:
            self.process = subprocess.Popen(
                ["sh", "-c", LEASH, "sh", self.home, *server, "-p", str(self.port), "-F", *settings],
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self.who,
            )
        until = time.monotonic() + 30
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    unavailable(f"PostgreSQL did not start: {(self.home / 'log').read_text()[-2000:]}")
                time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server as a crash would."""
        assert self.process is not None
        postmaster = int((self.home / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        until = time.monotonic() + 30
        while Path(f"/proc/{postmaster}").exists() and time.monotonic() < until:
            time.sleep(0.05)


@contextmanager
def replicating_postgres() -> Iterator[ReplicatingPostgres]:
    """A server on a loopback port; stopped at the end."""
    home = Path(tempfile.mkdtemp(prefix="penstock-cdc-"))
    made = ReplicatingPostgres(home, postgres_binaries(), free_port())
    if made.who:
        os.chown(home, made.who["user"], made.who["group"])
    data = home / "data"
    initdb = [made.binaries / "initdb", "-D", data, "-U", "penstock", "--auth=trust", "--no-sync"]
    command = [*initdb, "-E", "UTF8"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, **made.who)
    if done.returncode:
        shutil.rmtree(home)
        unavailable(f"PostgreSQL did not initialise: {done.stderr.strip()}")
    (data / "pg_hba.conf").write_text(HBA)
    try:
        made.start()
        with made.connect() as server:
            password = PASSWORD.replace("'", "''")
            server.execute(f"CREATE ROLE {USER} LOGIN REPLICATION PASSWORD '{password}'")
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.communicate(timeout=60)
        shutil.rmtree(home, ignore_errors=True)
