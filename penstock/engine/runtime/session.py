"""The Spark session of a worker."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.file.paths import is_local
from penstock.engine.plan.reach import reach_of
from penstock.engine.runtime.cluster import cluster_properties, welcome
from penstock.engine.runtime.storage import prepare_storage, storage_properties
from penstock.settings import Settings
from penstock.spark.archive import ClassArchive
from penstock.spark.driver import GATEWAY_LOGGER, await_calls, lighten_local_files, silence
from penstock.spark.fork_server import fork_server
from penstock.spark.jars import REPOSITORY
from penstock.spark.java import collector_chosen, require_java
from penstock.spark.java_classes import CACHE
from penstock.spark.jvm import remember_classes
from penstock.spark.launcher import SERVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATE = "org.apache.spark.sql.execution.streaming.state"

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

QUIET_JVM = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",  # a stack for each query's end
    "org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream",
    "org.apache.spark.sql.catalyst.analysis.ResolveWriteToStream",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin",  # a stack for each of its attempts
    "org.apache.kafka.clients",  # a line for each attempt to connect
)
QUIET_PYTHON = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", f"{GATEWAY_LOGGER}.clientserver")


Launch = Callable[[Mapping[str, str]], None]
"""Starts the JVM with properties."""


def open_session(
    settings: Settings, launch: Launch | None = None, output: int = 2, *, short: bool = False
) -> SparkSession:
    """Start Spark in this process, with `launch` for its JVM if given, or return the existing session.

    `output` is the file descriptor that Spark's Python processes print to. A `short` session lives for
    seconds: its JVM favors fast compilation over fast code.
    """
    require_java()
    # Without this, Spark's workers may run another Python, and a query hangs without an error.
    os.environ["PYSPARK_PYTHON"] = settings.spark.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not settings.on_cluster:
        if (server := fork_server(output)) is not None:
            os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(server.python)
            os.environ[SERVER] = str(server.address)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # only local processes connect
    from pyspark.sql import SparkSession

    remember_classes()
    chosen = configuration(settings, short=short)
    on_new_cluster = settings.on_cluster and SparkSession.getActiveSession() is None
    if on_new_cluster:
        chosen |= cluster_properties(settings)
    builder = SparkSession.builder.appName("penstock")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    if launch is not None:
        launch(chosen)
    spark = builder.getOrCreate()
    _quieten(spark)
    await_calls(spark)
    if is_local(settings.checkpoint_url):
        lighten_local_files(spark)
    prepare_storage(spark, settings)
    if on_new_cluster:
        welcome(spark)
    return spark


def _quieten(spark: Any) -> None:
    """Silence Spark's log lines about errors that Penstock handles and reports itself."""
    silence(spark, QUIET_JVM)
    for name in QUIET_PYTHON:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def configuration(settings: Settings, *, short: bool = False) -> dict[str, str]:
    """Every Spark property of a session: Penstock's defaults, overridden by the user's settings."""
    master = settings.spark.get("spark.master", "local[*]")
    chosen = {
        CACHE: str(settings.cache_directory),
        REPOSITORY: settings.jars.repository or "",
        **reach_of(settings),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.pyspark.python": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        # Cached data is read within seconds: compression costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.warehouse.dir": str(settings.home / "spark-warehouse"),
        # Interactive queries get a share of the cores, and never delay a flow for long.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
        # User SQL must not use a path as a table.
        "spark.sql.runSQLOnFiles": "false",
        # Spark would compute an expression that occurs twice in advance, outside of the expression that
        # catches its failure, so that one bad event would stop the batch.
        "spark.sql.subexpressionElimination.enabled": "false",
        # Spark would record, with several calls to the JVM, which line of Penstock created each column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Events dropped by a filter inside the reader would not be counted as read.
        "spark.sql.json.filterPushdown.enabled": "false",
        "spark.sql.csv.filterPushdown.enabled": "false",
        # Rows passed to a Java class must be returned unchanged, even with dates before 1582.
        "spark.sql.datetime.java8API.enabled": "true",
        # The default is an encoding that Parquet has deprecated; pyarrow misreads times before 1677.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # TCP's delayed acknowledgement costs 40 ms per Python task on loopback.
        "spark.python.unix.domain.socket.enabled": "true",
        # Whole Arrow batches pass between Java and Python, for which the default of 64 KiB is small.
        "spark.buffer.size": str(1024 * 1024),
        # 0, the default, waits forever for a query that does not end.
        "spark.sql.streaming.stopTimeout": f"{settings.worker.drain_ms}ms",
        # Fixed in a checkpoint when its pipeline is created, so chosen for the long term.
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        # May change for an existing checkpoint. Counting rows would cost a read per write; a read that finds
        # nothing is the slowest, because RocksDB's Java binding throws an exception internally.
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    }
    if not settings.on_cluster:
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Spark's default of 200 makes a small stateful batch take seconds on a few cores.
            "spark.sql.shuffle.partitions": str(_local_cores(master)),
        }
    chosen |= storage_properties(settings)
    return {**chosen, **settings.spark, JAVA_OPTIONS: _java_options(settings, short)}


def _java_options(settings: Settings, short: bool) -> str:
    """The user's JVM options, or by default a garbage collector and a compiler, and the class archive."""
    # On a few cores the parallel collector is a fifth faster than Java's default.
    local = not settings.on_cluster
    collector = "-XX:+UseSerialGC" if short else "-XX:+UseParallelGC"
    own = collector if local and not collector_chosen() else ""
    if short:
        own += " -XX:TieredStopAtLevel=1"
    archive = ClassArchive.of(settings)
    return " ".join([settings.spark.get(JAVA_OPTIONS, own), *(archive.options() if archive else ())]).strip()


def _local_cores(master: str) -> int:
    match = re.match(r"local\[(\d+)", master)
    return int(match.group(1)) if match else (os.cpu_count() or 1) if "*" in master else 1
