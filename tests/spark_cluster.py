"""A real Spark cluster on loopback: a master, and workers that do not see the disk of the driver.

Each worker runs in a mount namespace of its own. The checkout and the directory for temporary files, where
the tests keep everything, are empty there. Visible are Spark and Python, without Penstock, the directory of
the worker itself and one directory that all share, as a network file system would be.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.java import QUICK, ROOT
from tests.servers import free_port, unavailable

PATIENCE_S = 120.0

REGISTERED = "Successfully registered with master"

LEASH = ("setpriv", "--pdeathsig", "KILL")
"""Ends a process with the process of the tests, however that ends."""

HIDING = """
set -e
exec 3<"$SEEN_PYTHON" 4<"$SHARED" 5<"$OWN"
for place in "$TEMPORARY" "$CHECKOUT"; do if [ -d "$place" ]; then mount -t tmpfs tmpfs "$place"; fi; done
mkdir -p "$PYTHON" "$SHARED" "$OWN"
mount --no-canonicalize --bind /proc/self/fd/3 "$PYTHON"
mount --no-canonicalize --bind /proc/self/fd/4 "$SHARED"
mount --no-canonicalize --bind /proc/self/fd/5 "$OWN"
exec 3<&- 4<&- 5<&-
cd "$OWN"
exec "$@"
"""
"""Runs a command with an empty disk, on which Python, the shared directory and its own one are mounted."""


@dataclass
class Member:
    """A master or a worker."""

    directory: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """Its own output."""
        return (self.directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        """Kill -9 of the process and of all that it has started, such as executors and their Python."""
        with_children = [psutil.Process(self.process.pid)]
        with_children += with_children[0].children(recursive=True)
        for process in with_children:
            with contextlib.suppress(psutil.NoSuchProcess):  # its parent has ended it
                process.kill()
        self.process.wait(30)


@dataclass
class SparkCluster:
    """A running cluster. `python` is the path of Python on all machines, `shared` what all of them see."""

    directory: Path
    python: Path
    shared: Path
    port: int = 0
    master: Member | None = None
    workers: list[Member] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The master, as `spark.master` names it."""
        return f"spark://127.0.0.1:{self.port}"

    @classmethod
    @contextmanager
    def run(cls, workers: int = 2) -> Iterator[SparkCluster]:
        """A cluster of as many workers with a core each; stopped at the end."""
        _require_namespaces()
        directory = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
        made = cls(directory, directory / "python" / "bin" / "python", directory / "shared")
        made.shared.mkdir()
        _link_environment(directory / "python")
        try:
            made._start_master()
            for _ in range(workers):
                made.start_worker()
            for member in made.workers:
                made._wait(member, REGISTERED)
            yield made
        finally:
            for member in (*made.workers, *([made.master] if made.master else ())):
                if member.process.poll() is None:
                    member.kill()
            shutil.rmtree(directory, ignore_errors=True)

    def kill_worker(self) -> None:
        """Kill the oldest machine that runs."""
        next(worker for worker in self.workers if worker.process.poll() is None).kill()

    def add_worker(self) -> None:
        """Start a worker and wait until the master knows it."""
        self._wait(self.start_worker(), REGISTERED)

    def start_worker(self) -> Member:
        """Start a worker."""
        own = self.directory / f"worker-{len(self.workers)}"
        (own / "home").mkdir(parents=True)
        host = f"127.0.0.{len(self.workers) + 2}"  # Spark takes executors of one address for one machine
        spark = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
        spark += ["--cores", "1", "--memory", "1g", "--work-dir", str(own / "work"), self.url]
        hidden = ["unshare", "--mount", "sh", "-c", HIDING, "sh"]
        member = self._start(own, [*hidden, str(self._spark_class), *spark], host)
        self.workers.append(member)
        return member

    @property
    def _spark_class(self) -> Path:
        libraries = self.python.parents[1] / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        return libraries / "pyspark" / "bin" / "spark-class"

    def _start_master(self) -> None:
        own = self.directory / "master"
        own.mkdir()
        self.port = free_port()
        spark = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(self.port)]
        self.master = self._start(own, [str(self._spark_class), *spark, "--webui-port", "0"])
        self._wait(self.master, r"I have been elected leader")

    def _start(self, own: Path, command: list[str], host: str = "127.0.0.1") -> Member:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(own / "home"),
            "SPARK_HOME": str(self._spark_class.parents[1]),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": host,
            "JAVA_TOOL_OPTIONS": QUICK,
            "SEEN_PYTHON": sys.prefix,
            "PYTHON": str(self.directory / "python"),
            "SHARED": str(self.shared),
            "OWN": str(own),
            "TEMPORARY": tempfile.gettempdir(),
            "CHECKOUT": str(ROOT),
        }
        if "JAVA_HOME" in os.environ:
            environment["JAVA_HOME"] = os.environ["JAVA_HOME"]
        with (own / "log").open("wb") as output:
            process = subprocess.Popen(
                [*LEASH, *command],
                env=environment,
                cwd=own,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return Member(own, process)

    def _wait(self, member: Member, text: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not re.search(text, member.log):
            if member.process.poll() is not None or time.monotonic() > until:
                unavailable(f"no Spark cluster: {member.log[-3000:]}")
            time.sleep(0.1)


def _require_namespaces() -> None:
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()],
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        unavailable(f"no mount namespaces, which only root may make: {tried.stderr.decode().strip()}")


def _link_environment(place: Path) -> None:
    """Let the driver find the environment where workers have it mounted."""
    place.mkdir()
    for entry in Path(sys.prefix).iterdir():
        (place / entry.name).symlink_to(entry)
