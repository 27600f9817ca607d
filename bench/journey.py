"""Kafka → JavaScript → PostgreSQL on a server: the rate of a backlog, and the latency at a steady rate."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.product import Product, product
from tests.kafka_server import Kafka, kafka
from tests.servers import connect, postgres

EVENTS, RATE, WARM_S, MEASURED_S = 500_000, 1_000, 5, 15
SCHEMA = "id BIGINT, sent DOUBLE, customer STRING, amount DOUBLE"
SCRIPT = """
function processBatch(events) {
  return events.filter(e => e.amount > 10).map(e => ({...e, gross: e.amount * 1.1}));
}
"""
LATE_S = 60.0


def measure(work: Path, count: int = EVENTS) -> list[str]:
    """The lines of a report."""
    with kafka() as broker, postgres() as url, product(work / "home", 1) as server:
        backlog = _backlog(server, broker, url, count)
        delays = _steady(server, broker, url)
    p50, p99 = statistics.median(delays), statistics.quantiles(delays, n=100)[98]
    return [
        f"{count:,} JSON events of about 100 bytes in 4 partitions through a script in batches of 10,000, "
        "nine of ten kept and upserted by key; broker, database and worker share the machine. All rows are "
        "counted, and their ids summed, in the database.",
        "",
        f"Backlog: {count / backlog:,.0f} events/s ({backlog:.1f} s from the request to the last row).",
        "",
        f"At {RATE:,} events/s for {MEASURED_S} s, from the send to the insert in PostgreSQL: "
        f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {max(delays):.0f} ms ({len(delays):,} events).",
    ]


def _events(first: int, end: int, sent: float) -> list[str]:
    return [
        json.dumps({"id": i, "sent": sent, "customer": f"customer {i % 1000}", "amount": i % 100 + 1})
        for i in range(first, end)
    ]


def _kept(first: int, end: int) -> tuple[int, int]:
    """The number of events that pass the script, and the sum of their ids."""
    ids = [i for i in range(first, end) if i % 100 + 1 > 10]
    return len(ids), sum(ids)


def _create(server: Product, broker: Kafka, url: str, name: str, topic: str, **spec: Any) -> None:
    with connect(url) as database:
        database.execute(
            f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, sent FLOAT8, customer TEXT, amount FLOAT8, "
            "gross FLOAT8, stored TIMESTAMPTZ DEFAULT clock_timestamp())"
        )
    plain = url.replace("+psycopg", "")
    sink = {"type": "sql", "url": plain, "table": name, "mode": "upsert", "key": ["id"]}
    source = {"type": "kafka", "brokers": [broker.address], "topics": [topic], "schema": SCHEMA}
    step = {"type": "javascript", "inline": SCRIPT, "schema": f"{SCHEMA}, gross DOUBLE"}
    server.create("Pipeline", name, {"source": source, "processors": [step], "sinks": [sink], **spec})


def _backlog(server: Product, broker: Kafka, url: str, count: int) -> float:
    """Seconds until the last event of a topic is in the table."""
    print(f"making {count:,} events…", file=sys.stderr)
    topic = broker.topic(4)
    broker.send(topic, *_events(0, count, 0.0))
    expected, began = _kept(0, count), time.monotonic()
    _create(server, broker, url, "backlog", topic)
    with connect(url) as database:
        while True:
            found = database.execute("SELECT count(*), coalesce(sum(id), 0) FROM backlog").fetchone()
            assert found is not None
            if found[0] == expected[0]:
                break
            if time.monotonic() - began > LATE_S + count / 5_000:
                raise SystemExit(f"{found[0]} of {expected[0]} rows came")
            time.sleep(0.1)
    if (found[0], int(found[1])) != expected:
        raise SystemExit(f"wrong rows: {found}, not {expected}")
    server.client.delete("/pipelines/backlog").raise_for_status()
    return time.monotonic() - began


def _steady(server: Product, broker: Kafka, url: str) -> list[float]:
    """Milliseconds from the send of each event to the insert of its row."""
    topic = broker.topic(4)
    _create(server, broker, url, "steady", topic)
    total, began = RATE * (WARM_S + MEASURED_S), time.time()
    for first in range(0, total, 10):
        while (due := began + first / RATE) > time.time():
            time.sleep(max(0.0, due - time.time()))
        broker.send(topic, *_events(first, first + 10, time.time()))
    expected, until = _kept(0, total)[0], time.monotonic() + LATE_S
    with connect(url) as database:
        while database.execute("SELECT count(*) FROM steady").fetchone() != (expected,):
            if time.monotonic() > until:
                raise SystemExit("not all rows came")
            time.sleep(0.2)
        query = "SELECT (extract(epoch FROM stored) - sent) * 1000 FROM steady WHERE id >= %s"
        return [float(row[0]) for row in database.execute(query, (RATE * WARM_S,)).fetchall()]
