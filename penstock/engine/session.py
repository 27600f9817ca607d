"""The Spark session of a worker."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.paths import is_local
from penstock.errors import PenstockError, Problem
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE = "org.apache.spark.sql.execution.streaming.state"

JAVA_NEEDED = 17

JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

QUIET_JVM = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",  # a stack for each query's end
    "org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream",
    "org.apache.spark.sql.catalyst.analysis.ResolveWriteToStream",
    "org.apache.spark.util.Utils",
)
QUIET_PYTHON = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j.clientserver")


def open_session(settings: Settings) -> SparkSession:
    """Start Spark in this process, or return the session it has."""
    require_java()
    # Without this, Spark's Python workers may be another Python, and a query hangs with no word.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.spark.get("spark.master", "local").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is meant to connect
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("penstock")
    for name, value in configuration(settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _quieten(spark)
    return spark


def _quieten(spark: Any) -> None:
    """Silence what Spark logs about events that are told, better, by whoever handles them."""
    log4j = spark._jvm.org.apache.logging.log4j
    for name in QUIET_JVM:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    for name in QUIET_PYTHON:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def is_alive(spark: Any) -> bool:
    """Whether the JVM of a session still runs. It may have been killed, or have run out of memory."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def configuration(settings: Settings) -> dict[str, str]:
    """Every Spark property of a session: Penstock's own choices under the user's."""
    master = settings.spark.get("spark.master", "local[*]")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.pyspark.python": sys.executable,
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(settings.home / "spark-warehouse"),
        # Queries of people get a share of the cores, and never make a flow wait for long.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
        # Users' SQL may not name a path as a table.
        "spark.sql.runSQLOnFiles": "false",
        # Events that a filter drops inside the reader would not be counted as read.
        "spark.sql.json.filterPushdown.enabled": "false",
        "spark.sql.csv.filterPushdown.enabled": "false",
        # TCP's delayed acknowledgement costs 40 ms per Python task on loopback.
        "spark.python.unix.domain.socket.enabled": "true",
        # Between Java and Python whole Arrow batches pass, for which the default of 64 KiB is small.
        "spark.buffer.size": str(1024 * 1024),
        # 0, the default, waits for ever on a query that does not end.
        "spark.sql.streaming.stopTimeout": f"{settings.worker.drain_ms}ms",
        # Frozen in a checkpoint when its pipeline is created, so chosen for the long run.
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    }
    if master.startswith("local"):
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "" if _collector_chosen() else "-XX:+UseParallelGC",
            # Spark's default of 200 makes a small stateful batch take seconds on a few cores.
            "spark.sql.shuffle.partitions": str(_local_cores(master)),
        }
    if is_local(settings.checkpoint_url):
        chosen |= {
            # The default manager forks some twenty processes a batch where Hadoop's native library is
            # missing, as it is in the wheel. This one needs a single writer, which leases see to.
            "spark.sql.streaming.checkpointFileManagerClass": (
                f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
            ),
            "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        }
    return {**chosen, **settings.spark}


def require_java() -> None:
    """Refuse to start, with the line that helps, on a machine without a fitting Java."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = _java_major(java) if java else None
    if found is not None and found >= JAVA_NEEDED:
        return
    what = f"Java {found}" if found else "no Java"
    raise PenstockError(
        Problem(
            code="no_java",
            message=f"Spark needs Java {JAVA_NEEDED} or newer; there is {what} here",
            hint="Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
            "Windows: winget install EclipseAdoptium.Temurin.17.JRE",
        )
    )


def _java_major(java: str) -> int | None:
    """The major version of a Java, from the file beside it that says so, or else by starting it."""
    try:
        release = Path(java).resolve(strict=True).parents[1] / "release"
        match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(encoding="utf-8"))
    except (OSError, IndexError, UnicodeDecodeError):
        match = None
    if match is not None and os.access(java, os.X_OK):
        return int(match.group(1))
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match.group(1)) if match else None


def _collector_chosen() -> bool:
    """Whether the environment picks a garbage collector: Java does not start with two.

    Where it does not, the parallel one is a fifth faster than Java's default on a few cores.
    """
    return any("-XX:+Use" in os.environ.get(name, "") for name in JAVA_VARIABLES)


def _local_cores(master: str) -> int:
    match = re.match(r"local\[(\d+)", master)
    return int(match.group(1)) if match else (os.cpu_count() or 1) if "*" in master else 1
