"""What the tests of queues (`amqp`, `mqtt`, `nats`, `redis`) share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole, probe_connector
from penstock.testing.sink_suite import SinkSystem
from penstock.testing.source_suite import SourceSystem
from tests.daemon import PASSWORD, USER, Daemon
from tests.flows import NO_STREAMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, name STRING"
LOGIN = {"login": {"username": USER, "password": PASSWORD}}
WRONG_LOGIN = {"login": {"username": USER, "password": "wrong"}}


class Stopped:
    """A place in a server that can be killed and started again."""

    server: Daemon

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()


class QueueTarget(Stopped, SinkSystem):
    """A queue that a sink sends to. Its spec has `max_event_bytes: 1000`."""

    keyed = True
    outage_s = 30.0

    def bad(self) -> tuple[dict[str, str], str]:
        return {"name": "repeat('x', CAST(seq % 2 AS INT) * 2000)"}, "too_large"


class QueuePlace(Stopped, SourceSystem):
    """A queue that a source receives from."""

    keyed = True
    outage_s = 60.0


def probe(spark: SparkSession, role: ConnectorRole, **spec: Any) -> Probe:
    """The result of a connection test, which takes seconds and says what to do about each problem."""
    began = time.monotonic()
    found = probe_connector(role, spec, NO_STREAMS, spark, {})
    assert time.monotonic() - began < 15
    assert all(problem.hint for problem in found.problems)
    return found


def codes(found: Probe) -> list[tuple[str, str | None]]:
    """The codes and the paths of its problems."""
    return [(problem.code, problem.path) for problem in found.problems]
