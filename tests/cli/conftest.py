from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from typer.testing import CliRunner, Result

from tests.cli.commands import Penstock, quiet_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = Callable[..., Result]


@pytest.fixture
def penstock(tmp_path: Path) -> Iterator[Penstock]:
    """The command in an empty directory."""
    runner = Penstock(tmp_path)
    yield runner
    runner.kill_everything()


@pytest.fixture
def in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """The command in this process and in the same empty directory; it fails if it starts Spark."""
    from penstock.cli.main import app
    from penstock.engine.runtime.session import require_java

    def refuse(*_: Any) -> None:
        require_java()
        raise AssertionError("the command started Spark")

    monkeypatch.setattr("penstock.engine.runtime.session.open_session", refuse)
    for name in set(os.environ) - set(quiet_environment()):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    with own_signals_and_logs():
        yield lambda *arguments, stdin=None: CliRunner().invoke(app, arguments, input=stdin)


@pytest.fixture
def with_spark(in_process: Command, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process, with the Spark session of the tests: it starts no JVM."""
    monkeypatch.setattr("penstock.cli.sessions.Starting", lambda *_: Started(spark))
    return in_process


@dataclass(frozen=True)
class Started:
    """A session that has started; see `penstock.cli.sessions.Starting`."""

    spark: SparkSession

    def session(self, log: Path) -> contextlib.AbstractContextManager[SparkSession]:
        return contextlib.nullcontext(self.spark)

    def end(self) -> None: ...


@contextlib.contextmanager
def own_signals_and_logs() -> Iterator[None]:
    """Undo what a command does to the process that it expects to be its own."""
    numbers, root, structured = (signal.SIGINT, signal.SIGTERM), logging.getLogger(), structlog.get_config()
    handled = {number: signal.getsignal(number) for number in numbers}
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.configure(**structured)
