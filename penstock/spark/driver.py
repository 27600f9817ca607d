"""The JVM behind a session: calls beyond Spark's public interface."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LOCAL_FILES = Path(__file__).with_name("java") / "LocalFiles.java"

GATEWAY_LOGGER = "py4j"
"""The logger of the bridge between Python and the JVM."""

DEEPEST = 50
"""The maximum number of causes of an exception to examine: a chain may be circular."""

ENDING_S = 2.0
"""Seconds to wait for the end of a JVM that does not respond."""


def java_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The exceptions that Spark calls may raise, including those without a class in PySpark."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, *others


def error_text(error: Any) -> str:
    """The text of a Python or Java exception and its Java causes, each as `class: message`."""
    throwable = error
    if isinstance(error, BaseException):  # else an exception of Java itself
        origin = getattr(error, "_origin", None)
        throwable = origin if origin is not None else getattr(error, "java_exception", None)
    lines: list[str] = []
    while throwable is not None and len(lines) < DEEPEST:
        lines.append(f"{throwable.getClass().getName()}: {throwable.getMessage()}")
        throwable = throwable.getCause()
    return "\n".join(lines) or f"{type(error).__name__}: {error}"


def launch(configuration: Mapping[str, str], output: Callable[[], IO[bytes]]) -> None:
    """Start the JVM as PySpark does, with its output in a file, unless this process already has one."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    context: Any = SparkContext
    start: Any = launch_gateway
    if context._gateway is None:
        conf = SparkConf().setAll(list(configuration.items()))
        with output() as file:
            gateway = start(conf, {"stdout": file, "stderr": file})
        context._ensure_initialized(gateway=gateway)


def is_alive(spark: Any) -> bool:
    """Whether the JVM of a session still runs. It may have been killed, or have run out of memory."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def exit_code(spark: Any) -> int | None:
    """The exit code of the JVM of a session; None while it runs, or if it is not a child of this process."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return None if process is None else process.poll()


def runs_tasks(spark: Any) -> bool:
    """Whether an executor of the session is running tasks."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    return any(info.numRunningTasks() > 0 for info in tracker.getExecutorInfos())


def has_ended(spark: Any) -> bool:
    """Whether the JVM of a session has ended, or does not respond because it is ending."""
    if not is_alive(spark):
        return True
    try:
        spark.sparkContext._jvm.java.lang.System.nanoTime()
    except Exception:
        process = getattr(spark.sparkContext._gateway, "proc", None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process is not None and process.wait(ENDING_S) is not None
    return False


def end(spark: Any, seconds: float) -> None:
    """Stop a session and wait for its JVM to exit normally."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(seconds)


def jvm_of(spark: Any) -> Any:
    """The classes of a session's JVM."""
    return spark.sparkContext._jvm


def lighten_local_files(spark: Any) -> None:
    """Prevent Hadoop from starting a process for each local file, and from writing a `.crc` file next to it.

    `RawLocalFileSystem` as `fs.file.impl` would not write `.crc` files either, but RocksDB's state snapshots
    fail with it.
    """
    java_class(spark, LOCAL_FILES).install(hadoop_configuration(spark))


def await_calls(spark: Any) -> None:
    """Allow the JVM to call functions of this process from now on.

    By default PySpark starts the callback server with the first query. The server uses `select.select`, which
    fails for descriptors above 1,023: it needs a low one, and gets it while few files are open.
    """
    from pyspark import java_gateway

    bridge: Any = java_gateway
    bridge.ensure_callback_server_started(spark.sparkContext._gateway)


def hadoop_configuration(spark: Any, options: Mapping[str, str] | None = None) -> Any:
    """The configuration for opening Hadoop's file systems, with additional settings."""
    found = spark._jsc.hadoopConfiguration()
    if not options:
        return found
    made = jvm_of(spark).org.apache.hadoop.conf.Configuration(found)
    for name, value in options.items():
        made.set(name, value)
    return made


def file_system_class(spark: Any, scheme: str, options: Mapping[str, str]) -> str | None:
    """The name of Hadoop's class for the scheme of a URL; None if it has none."""
    files = jvm_of(spark).org.apache.hadoop.fs.FileSystem
    try:
        return str(files.getFileSystemClass(scheme, hadoop_configuration(spark, options)).getName())
    except java_errors():
        return None


def silence(spark: Any, loggers: Iterable[str]) -> None:
    """Turn off loggers of the JVM."""
    log4j = spark._jvm.org.apache.logging.log4j
    for name in loggers:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def compile_pattern(spark: Any, pattern: str) -> None:
    """Raise PySpark's `IllegalArgumentException` if a text is not a valid Java regular expression."""
    spark._jvm.java.util.regex.Pattern.compile(pattern)


def transform_with_state(
    df: Any, group: Column, key: DataFrame, step: Callable[[Any], Any], time: str | None
) -> DataFrame:
    """The output of a stateful Java class for the rows of each group.

    `step` gets the encoder of rows with the columns of `key`. `time` is the column with the watermark.
    """
    from pyspark.sql import DataFrame

    api = df.sparkSession._jvm.org.apache.spark.sql

    def encoder(frame: Any) -> Any:
        return api.Encoders.row(frame._jdf.schema())

    rows = encoder(df)
    groups = getattr(df.groupBy(group)._jgd, "as")(encoder(df.select(group)), rows)
    when = time if time is not None else getattr(api.streaming.TimeMode, "None")()
    made = groups.transformWithState(step(encoder(key)), when, api.streaming.OutputMode.Append(), rows)
    return DataFrame(made, df.sparkSession)
