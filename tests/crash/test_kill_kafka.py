"""Kill -9 of a worker between streams in Kafka, and of the broker: nothing lost and nothing repeated."""

from __future__ import annotations

import random
import time

import pytest

from tests.cli.commands import wait_for
from tests.crash.sender import Sender, lay_pipes, numbers_in
from tests.kafka_server import Kafka
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STREAMS = ("kafka_first", "kafka_second")


def wait_for_more(product: Product) -> None:
    """Wait until more events have come through all of it."""
    arrived = wait_for("an answer", lambda: 1 + count(product)) - 1
    wait_for("events to arrive", lambda: count(product) > arrived)


def count(product: Product) -> int:
    """How many events have come through all of it; -1 while the broker does not answer."""
    answer = product.client.get("/streams/kafka_second/stats")
    assert answer.status_code in (200, 503), answer.text
    return int(answer.json()["next"]) if answer.status_code == 200 else -1


def test_streams_in_kafka_survive_a_kill(product: Product, broker: Kafka) -> None:
    """HTTP → pipeline → stream in Kafka → task → stream in Kafka."""
    lay_pipes(product, "kafka_", "kafka")
    sender = Sender(product, "kafka_numbers")
    try:
        with sender.sending():
            for victim in (product.kill_worker, product.kill_worker, broker.kill):
                wait_for_more(product)
                time.sleep(random.uniform(0, 0.5))
                victim()
                if victim == broker.kill:
                    broker.start()
            wait_for_more(product)
        wait_for("all events", lambda: count(product) >= sender.acknowledged)
        for stream in STREAMS:
            assert numbers_in(product, stream) == list(range(sender.acknowledged)), "each once, in order"
    finally:
        for kind, name in (
            ("tasks", "copy"),
            ("pipelines", "in"),
            ("streams", "second"),
            ("streams", "first"),
        ):
            answer = product.client.delete(f"/{kind}/kafka_{name}")
            assert answer.status_code in (200, 204), answer.text
    wait_for("no topics", lambda: not [topic for topic in broker.topics() if "kafka_" in topic])
