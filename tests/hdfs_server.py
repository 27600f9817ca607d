"""HDFS for tests: NameNode and DataNode in one JVM, its jars by Maven into the cache of the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.daemon import Daemon
from tests.java import CACHE, QUICK
from tests.servers import free_port, unavailable

HADOOP, JUNIT, SLF4J = "3.5.0", "5.13.3", "1.7.36"
"""The version of Hadoop's client among Spark's jars, and what its test cluster lacks."""

PACKAGES = (
    ("org.apache.hadoop", "hadoop-client-minicluster", HADOOP),
    ("org.junit.jupiter", "junit-jupiter-api", JUNIT),
    ("org.slf4j", "slf4j-simple", SLF4J),
)

JARS = CACHE / f"hdfs-{HADOOP}"


class Hdfs(Daemon):
    """A running HDFS."""

    package, program = "hdfs", "java"
    patience_s = 90.0

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port, self.page = free_port(), free_port()

    @classmethod
    def prepare(cls) -> None:
        if (JARS / "done").exists():
            return
        if not shutil.which("mvn"):
            unavailable("no Maven to fetch an HDFS with (Debian: sudo apt-get install -y maven)")
        with tempfile.TemporaryDirectory() as work:
            (Path(work) / "pom.xml").write_text(_pom())
            part = JARS.with_suffix(f".{os.getpid()}")
            command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
            if done.returncode:
                unavailable(f"Maven could not fetch an HDFS: {done.stdout[-2000:]}")
            (part / "done").touch()
            if not JARS.exists():
                part.rename(JARS)

    def command(self) -> Sequence[str]:
        return [
            "java", "-Xmx256m", *QUICK.split(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp", f"{JARS}/*", "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr",
            "-nnport", str(self.port), "-nnhttpport", str(self.page), "-datanodes", "1",
            "-writeDetails", str(self.home / "ready"),
            *([] if (self.home / "target").exists() else ["-format"]),
        ]  # fmt: skip

    def answers(self) -> bool:
        return (self.home / "ready").exists()

    def kill(self) -> None:
        super().kill()
        (self.home / "ready").unlink()

    def directory(self) -> str:
        """The URL of a new directory."""
        return f"hdfs://127.0.0.1:{self.port}/{uuid.uuid4().hex[:12]}"


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in PACKAGES
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>penstock</groupId><artifactId>hdfs</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
