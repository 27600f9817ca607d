"""Spark for a command in the foreground, with its noise in a file."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, Problem
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_S = 10.0
"""How long Spark may take to stop before the process ends without it."""


@contextlib.contextmanager
def spark_session(settings: Settings, log: Path | None = None) -> Iterator[SparkSession]:
    """A session that is stopped at the end. With `log`, what the JVM prints goes to that file."""
    from penstock.engine.session import open_session

    try:
        with to_file(log) if log else contextlib.nullcontext():
            session = open_session(settings)
    except PenstockError:
        raise
    except Exception as error:
        message = f"Spark did not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        raise PenstockError(
            Problem(code="spark_failed", message=message, hint=f"its log is {log}" if log else None)
        ) from None
    try:
        yield session
    finally:
        _stop(session)


@contextlib.contextmanager
def to_file(log: Path) -> Iterator[None]:
    """Point standard output and error at a file, for the processes that are started meanwhile."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _stop(session: SparkSession) -> None:
    def stop() -> None:
        with contextlib.suppress(Exception):  # the JVM may be gone
            session.stop()

    thread = threading.Thread(target=stop, name="stop spark", daemon=True)
    thread.start()
    thread.join(STOP_S)
