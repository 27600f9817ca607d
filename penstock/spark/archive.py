"""The class archive: Spark's classes as a JVM has them in memory, from which the next JVM starts faster.

Java calls this application class data sharing. An archive fits one build of Java and one set of jars. It is
made once, by a process of its own at the lowest priority, and never waited for: where there is none yet, or
where Java finds that it does not fit, Spark starts as it would without.
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
"""The module that makes an archive, run as a process: it needs flows to learn from."""

LOOK_S = 30.0
"""Seconds between two checks whether the machine is idle."""

IDLE_LOAD = 0.5
"""The machine counts as idle below this load, by core, over a minute."""

UNUSED_DAYS = 30
"""An archive that no JVM has used for this long is deleted when another one is made."""


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
        with contextlib.suppress(OSError, RuntimeError):  # no home directory, or none that can be written
            directory = settings.cache_directory
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK) and not any(c.isspace() for c in str(directory)):
                return cls(directory / f"spark-{_key(release, jars)}.jsa")
        return None

    @property
    def ready(self) -> bool:
        """Whether a JVM can use it."""
        return self.path.exists()

    def options(self) -> list[str]:
        """Options of a JVM that uses the archive, without a warning if the archive does not fit."""
        if not self.ready:
            return []
        with contextlib.suppress(OSError):
            os.utime(self.path)
        return [f"-XX:SharedArchiveFile={self.path}", "-Xlog:disable", "-Xlog:all=error:stderr"]

    def make(self) -> None:
        """Make the archive in a process that outlives this one, unless there is one or it is being made."""
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
        """Make the archive once this machine is idle. Returns at once."""
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
    """Where Spark's jars are."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec and spec.origin else None


def _key(release: str, jars: Path) -> str:
    """A key that changes with everything that an archive depends on."""
    files = sorted((entry.name, entry.stat().st_size) for entry in os.scandir(jars))
    return hashlib.sha256(repr((__version__, release, str(jars), files)).encode()).hexdigest()[:16]
