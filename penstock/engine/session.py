"""The Spark session of a worker."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.paths import is_local
from penstock.settings import Settings
from penstock.spark.archive import ClassArchive
from penstock.spark.fork_server import fork_server
from penstock.spark.java import collector_chosen, require_java
from penstock.spark.jvm import remember_classes
from penstock.spark.launcher import SERVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE = "org.apache.spark.sql.execution.streaming.state"

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

QUIET_JVM = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",  # a stack for each query's end
    "org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream",
    "org.apache.spark.sql.catalyst.analysis.ResolveWriteToStream",
    "org.apache.spark.util.Utils",
)
QUIET_PYTHON = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j.clientserver")


Launch = Callable[[Mapping[str, str]], None]
"""Starts the JVM with these properties."""


def open_session(
    settings: Settings, launch: Launch | None = None, output: int = 2, *, short: bool = False
) -> SparkSession:
    """Start Spark in this process, its JVM by `launch` if that is given, or return the session it has.

    `output` is the file descriptor that Spark's Python processes print to. A `short` session is for seconds:
    its JVM compiles quickly rather than well.
    """
    require_java()
    # Without this, Spark's Python workers may be another Python, and a query hangs with no word.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.spark.get("spark.master", "local").startswith("local"):
        if (server := fork_server(output)) is not None:
            os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(server.python)
            os.environ[SERVER] = str(server.address)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is meant to connect
    from pyspark.sql import SparkSession

    remember_classes()
    chosen = configuration(settings, short=short)
    builder = SparkSession.builder.appName("penstock")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    if launch is not None:
        launch(chosen)
    spark = builder.getOrCreate()
    _quieten(spark)
    if is_local(settings.checkpoint_url):
        _write_no_checksums(spark)
    return spark


def _write_no_checksums(spark: Any) -> None:
    """Keep Hadoop from writing a `.crc` file beside each local file.

    `RawLocalFileSystem` as `fs.file.impl` would do so too, but RocksDB's snapshots of state fail with it.
    """
    files = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)
    files.setVerifyChecksum(False)


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


def configuration(settings: Settings, *, short: bool = False) -> dict[str, str]:
    """Every Spark property of a session: Penstock's own choices under the user's."""
    master = settings.spark.get("spark.master", "local[*]")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.pyspark.python": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(settings.home / "spark-warehouse"),
        # Queries of people get a share of the cores, and never make a flow wait for long.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
        # Users' SQL may not name a path as a table.
        "spark.sql.runSQLOnFiles": "false",
        # Spark would note, with several questions to the JVM, which line of Penstock made each column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Events that a filter drops inside the reader would not be counted as read.
        "spark.sql.json.filterPushdown.enabled": "false",
        "spark.sql.csv.filterPushdown.enabled": "false",
        # Rows that a class in Java is given must come back as they were, also before the year 1582.
        "spark.sql.datetime.java8API.enabled": "true",
        # The default is an encoding that Parquet has given up; pyarrow reads it wrongly before 1677.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
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
        }
    return {**chosen, **settings.spark, JAVA_OPTIONS: _java_options(settings, short)}


def _java_options(settings: Settings, short: bool) -> str:
    """The user's options of the JVM, else a garbage collector and a compiler, and the class archive."""
    # On a few cores the parallel collector is a fifth faster than Java's default.
    local = settings.spark.get("spark.master", "local").startswith("local")
    collector = "-XX:+UseSerialGC" if short else "-XX:+UseParallelGC"
    own = collector if local and not collector_chosen() else ""
    if short:
        own += " -XX:TieredStopAtLevel=1"
    archive = ClassArchive.of(settings)
    return " ".join([settings.spark.get(JAVA_OPTIONS, own), *(archive.options() if archive else ())]).strip()


def _local_cores(master: str) -> int:
    match = re.match(r"local\[(\d+)", master)
    return int(match.group(1)) if match else (os.cpu_count() or 1) if "*" in master else 1
