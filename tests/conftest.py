from __future__ import annotations

import gc
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from _pytest.nodeid import NodeId
from xdist.remote import Producer

from tests.hdfs_server import Hdfs
from tests.iceberg_server import RestCatalog
from tests.java import CACHE, make_archive
from tests.kafka_server import Kafka, kafka
from tests.mariadb_server import MariaDB, mariadb
from tests.mosquitto_server import Mosquitto
from tests.nats_server import Nats
from tests.postgres_cdc_server import ReplicatingPostgres, replicating_postgres
from tests.rabbitmq_server import Rabbitmq
from tests.redis_server import RedisServer
from tests.s3_server import S3
from tests.servers import connect, free_port, postgres
from tests.side_by_side import Stages, Units, arrange, is_for_the_night
from tests.streams.kit import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of processes import the same: compiled each time, that would take more time than the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


SERVERS = {
    "object_store",
    "hdfs",
    "iceberg_catalog",
    "replicating",
    "mariadb_server",
    "postgres_url",
    "broker",
    "nats_server",
    "redis_server",
    "rabbitmq",
    "mosquitto",
}
"""Fixtures that start a server."""


MANY_DESCRIPTORS = 300

hypothesis.settings.register_profile("tests", deadline=None)  # other tests run beside
hypothesis.settings.load_profile("tests")


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
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    if not NIGHTLY:
        items[:] = [item for item in items if not is_for_the_night(item)]
    arrange(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units | None:
    """Share tests among processes as `tests.side_by_side` says."""
    return Units(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="module", autouse=True)
def few_descriptors() -> Iterator[None]:
    """Close what the tests of a module left open: clients of some servers fail above 1,023 descriptors."""
    yield
    if (logs := sys.modules.get("penstock.frames.logs")) is not None:
        logs.LOGS.close()
    if len(os.listdir("/proc/self/fd")) > MANY_DESCRIPTORS:
        gc.collect()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a real PostgreSQL that lives as long as the test session."""
    with postgres() as url:
        yield url


@pytest.fixture(scope="session")
def broker_port() -> int:
    """The port of the broker, whether it is started or not."""
    return free_port()


@pytest.fixture(scope="session")
def broker(broker_port: int) -> Iterator[Kafka]:
    """A real Kafka broker that lives as long as the test session."""
    with kafka(broker_port) as started:
        yield started


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    """A real MariaDB, with a binary log, that lives as long as the test session."""
    with mariadb() as started:
        yield started


@pytest.fixture
def mariadb_database(mariadb_server: MariaDB) -> Iterator[str]:
    """Name of an empty database of this test alone."""
    with mariadb_server.database() as name:
        yield name


@pytest.fixture(scope="session")
def nats_server() -> Iterator[Nats]:
    """A real NATS server with JetStream that lives as long as the test session."""
    with Nats.run() as started:
        yield started


@pytest.fixture(scope="session")
def object_store() -> Iterator[S3]:
    """A real S3 server that lives as long as the test session."""
    with S3.run() as started:
        yield started


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """A real HDFS that lives as long as the test session."""
    with Hdfs.run() as started:
        yield started


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A real Redis server that lives as long as the test session."""
    with RedisServer.run() as started:
        yield started


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[Rabbitmq]:
    """A real RabbitMQ that lives as long as the test session."""
    with Rabbitmq.run() as started:
        yield started


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[Mosquitto]:
    """A real MQTT broker that lives as long as the test session."""
    with Mosquitto.run() as started:
        yield started


@pytest.fixture(scope="session")
def replicating() -> Iterator[ReplicatingPostgres]:
    """A real PostgreSQL with logical replication that lives as long as the test session."""
    with replicating_postgres() as started:
        yield started


@pytest.fixture(scope="session")
def iceberg_catalog() -> Iterator[RestCatalog]:
    """A real REST catalog of Iceberg that lives as long as the test session."""
    with RestCatalog.run() as started:
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
