from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.nodeid import NodeId
from xdist.remote import Producer

from tests.java import CACHE, make_archive
from tests.kafka_server import Kafka, kafka
from tests.servers import connect, postgres
from tests.side_by_side import Stages, Units, arrange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of processes import the same: compiled each time, that would take more time than the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(trylast=True)  # the terminal's reporter is there then
def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores it for commands in the background; those that tests interrupt would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stages(terminal))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before all tests, and before those who run them side by side."""
    is_part = session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if not (is_part or session.config.option.collectonly or hasattr(session.config, "workerinput")):
        make_archive()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a module of slow tests where only fast ones run: to collect this one takes 15 seconds."""
    if config.option.markexpr == "not slow" and collection_path.name == "test_contract.py":
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first; a test that needs a server is slow without saying so."""
    for item in items:
        # Schemathesis gives the tests of all routes one id, and of these only one would be run.
        if not item.nodeid.endswith(item.name):
            item._id = NodeId.parse(f"{item.nodeid.rpartition('::')[0]}::{item.name}")
        if {"postgres_url", "broker"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    arrange(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units | None:
    """Share tests among processes as `tests.side_by_side` says."""
    return Units(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a real PostgreSQL that lives as long as the test session."""
    with postgres() as url:
        yield url


@pytest.fixture(scope="session")
def broker() -> Iterator[Kafka]:
    """A real Kafka broker that lives as long as the test session."""
    with kafka() as started:
        yield started


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """URL of an empty database of this test alone."""
    name = f"test_{uuid.uuid4().hex}"
    with connect(postgres_url) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of this test process."""
    from penstock.testing.session import spark_session

    with spark_session(tmp_path_factory.mktemp("spark"), cache=CACHE) as session:
        yield session
