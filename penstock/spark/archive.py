"""The class archive: Spark's classes as a JVM has them in memory, from which the next JVM starts faster.

Java calls this application class data sharing. An archive matches one build of Java and one set of jars. It
is created once, by a separate process at the lowest priority, and never waited for: if there is none yet, or
Java finds that it does not match, Spark starts without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from penstock import __version__
from penstock.settings import Settings
from penstock.spark.java import java_release

MAKER = "penstock.engine.runtime.training"
"""The module that creates an archive, run as a process: it runs flows to load their classes."""

LOOK_S = 30.0
"""Seconds between two checks whether the machine is idle."""

IDLE_LOAD = 0.5
"""The machine counts as idle below this load average per core over one minute."""

UNUSED_DAYS = 30
"""An archive that no JVM has used for this many days is deleted when another one is created."""


@dataclass(frozen=True)
class ClassArchive:
    """The archive for the Java and the Spark of this process."""

    path: Path

    @classmethod
    def of(cls, settings: Settings) -> ClassArchive | None:
        """The archive of this machine; None if it is turned off or cannot be used here."""
        release, jars = java_release(), spark_jars()
        if not settings.class_archive or release is None or jars is None:
            return None
        with contextlib.suppress(OSError, RuntimeError):  # no writable home directory
            directory = settings.cache_directory
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK) and not any(c.isspace() for c in str(directory)):
                return cls(directory / f"spark-{_key(release, jars)}.jsa")
        return None

    @property
    def ready(self) -> bool:
        """Whether the archive exists, so that a JVM can use it."""
        return self.path.exists()

    def options(self) -> list[str]:
        """JVM options for using the archive, without a warning if the archive does not match."""
        if not self.ready:
            return []
        with contextlib.suppress(OSError):
            os.utime(self.path)
        return [f"-XX:SharedArchiveFile={self.path}", "-Xlog:disable", "-Xlog:all=error:stderr"]

    def make(self) -> None:
        """Create the archive in a process that outlives this one, unless it exists or is being created."""
        if self.ready:
            return
        with contextlib.suppress(OSError):
            subprocess.Popen(
                [sys.executable, "-m", MAKER, str(self.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.path.parent,
            )

    def make_when_idle(self) -> None:
        """Create the archive once this machine is idle. Returns immediately."""
        if not self.ready:
            threading.Thread(target=self._wait_and_make, name="class archive", daemon=True).start()

    def _wait_and_make(self) -> None:
        while not self.ready:
            time.sleep(LOOK_S)
            if os.getloadavg()[0] < IDLE_LOAD * (os.cpu_count() or 1):
                self.make()
                return

    def remove_unused(self) -> None:
        """Delete the archives of other versions that no JVM has used for a month."""
        oldest = time.time() - UNUSED_DAYS * 86_400
        for other in self.path.parent.glob("spark-*.jsa"):
            with contextlib.suppress(OSError):
                if other != self.path and other.stat().st_mtime < oldest:
                    other.unlink()


def spark_jars() -> Path | None:
    """The directory of Spark's jars."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec and spec.origin else None


def _key(release: str, jars: Path) -> str:
    """A key that changes with everything that an archive depends on."""
    files = sorted((entry.name, entry.stat().st_size) for entry in os.scandir(jars))
    return hashlib.sha256(repr((__version__, release, str(jars), files)).encode()).hexdigest()[:16]
