"""Spark sessions for commands, with the output of the JVM in a file."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, Problem
from penstock.settings import Settings
from penstock.spark.archive import ClassArchive
from penstock.spark.driver import GATEWAY_LOGGER, launch
from penstock.spark.fork_server import fork_server

if TYPE_CHECKING:
    import psutil
    from pyspark.sql import SparkSession

STOP_S = 10.0
"""Seconds that Spark may take to stop before the process exits anyway."""

KILL_S = 1.0
"""Seconds to look for a newly launched JVM, and to wait for it after it was killed."""


@contextlib.contextmanager
def spark_session(
    settings: Settings, log: Path | None = None, *, warm: bool = False
) -> Iterator[SparkSession]:
    """A session that is stopped at the end. The JVM prints to `log`, or else to the output of this process.

    With `warm`, the modules of Spark's Python processes are imported while the JVM starts: flows will follow.
    """
    if warm and not settings.on_cluster and (server := fork_server()) is not None:
        server.preload()
    if log is not None:
        with starting_spark(settings) as spark, spark.session(log) as session:
            yield session
        return
    from penstock.engine.runtime.session import open_session

    try:
        session = open_session(settings)
    except Exception as error:
        raise _explained(error, None) from None
    try:
        yield session
    finally:
        _stop(session)
        _keep_classes(settings)


@contextlib.contextmanager
def starting_spark(settings: Settings, *, short: bool = True) -> Iterator[Starting]:
    """Start Spark in a thread, for a command that has other work to do until it needs a session.

    A command that may run for a long time is not `short`; see `open_session`.

    If the command ends without a session, such as after an error in a document, the JVM is killed at once.
    """
    starting = Starting(settings, short)
    try:
        yield starting
    finally:
        starting.end()


class Starting:
    """A session that starts in a thread."""

    def __init__(self, settings: Settings, short: bool) -> None:
        self._settings, self._short = settings, short
        self._log = settings.home / "logs" / f"spark-{os.getpid()}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._output = self._log.open("wb")
        self._lock = threading.Lock()
        self._given_up = self._launched = self._kept = self._stopped = False
        self._session: SparkSession | None = None
        self._error: Exception | None = None
        self._earlier: set[int] = set()
        self._thread = threading.Thread(target=self._start, name="start spark", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def session(self, log: Path) -> Iterator[SparkSession]:
        """The session, once it has started; raises the reason if it failed. The JVM prints to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # Windows does not rename a file that is in use
            self._log = self._log.replace(log)
        self._kept = True
        self._thread.join()
        if self._error is not None:
            raise _explained(self._error, self._log) from None
        assert self._session is not None
        try:
            yield self._session
        finally:
            self._stopped = True
            _stop(self._session)
            _keep_classes(self._settings)

    def end(self) -> None:
        """Kill the JVM of a session that was not used, and remove its log."""
        if not self._stopped and self._error is None:
            self._give_up()
        self._output.close()
        if not self._kept:
            with contextlib.suppress(OSError):  # the directories may contain other files
                self._log.unlink(missing_ok=True)
                self._log.parent.rmdir()
                self._settings.home.rmdir()

    def _start(self) -> None:
        try:
            from penstock.engine.runtime.session import open_session

            output = self._output.fileno()
            self._session = open_session(self._settings, self._launch, output, short=self._short)
        except Exception as error:
            self._error = error

    def _launch(self, configuration: Mapping[str, str]) -> None:
        """Start the JVM as PySpark does, with its output in the log, unless this process has a JVM."""
        self._earlier = {process.pid for process in _jvms()}
        with self._lock:
            if self._given_up:
                raise InterruptedError("the session is not needed any more")
            self._launched = True
        launch(configuration, lambda: self._output)

    def _give_up(self) -> None:
        with self._lock:
            self._given_up = True
        if self._launched:
            logging.getLogger(GATEWAY_LOGGER).setLevel(logging.CRITICAL)  # it logs the loss of the JVM
            deadline = time.monotonic() + KILL_S
            while not self._kill() and self._thread.is_alive() and time.monotonic() < deadline:
                time.sleep(0.01)
            self._thread.join(KILL_S)

    def _kill(self) -> bool:
        """Kill the JVM that this object has launched; returns whether it was found."""
        import psutil

        found = [process for process in _jvms() if process.pid not in self._earlier]
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return bool(found)


def _jvms() -> list[psutil.Process]:
    """The child processes that run Spark, or a script that starts it."""
    import psutil

    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any("org.apache.spark" in word or "bin/spark-" in word for word in process.cmdline()):
                found.append(process)
    return found


def _explained(error: Exception, log: Path | None) -> PenstockError:
    if isinstance(error, PenstockError):
        return error
    message = f"Spark did not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    hint = f"its log is {log}" if log else None
    return PenstockError(Problem(code="spark_failed", message=message, hint=hint))


def _keep_classes(settings: Settings) -> None:
    """Update the class archive, so that the next JVM starts faster."""
    if (archive := ClassArchive.of(settings)) is not None:
        archive.make()


def _stop(session: SparkSession) -> None:
    def stop() -> None:
        with contextlib.suppress(Exception):  # the JVM may be gone
            session.stop()

    thread = threading.Thread(target=stop, name="stop spark", daemon=True)
    thread.start()
    thread.join(STOP_S)
