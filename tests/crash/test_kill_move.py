"""A stream that is moved into Kafka while pipelines write and read it, through kill -9 of each process."""

from __future__ import annotations

import random
import time

import pytest

from tests.cli.commands import wait_for
from tests.crash.sender import Sender, lay_pipes, numbers_in
from tests.kafka_server import Kafka
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def arrived(product: Product) -> int:
    return int(product.client.get("/streams/moved_second/stats").json()["next"])


def wait_for_more(product: Product) -> None:
    """Wait until more events have come through all of it."""
    before = arrived(product)
    wait_for("events to arrive", lambda: arrived(product) > before)


def move(product: Product, stream: str) -> None:
    """Begin the move of a stream, or continue it, unless it is done."""
    answer = product.client.post(f"/streams/{stream}/move", json={"to": "kafka"})
    done = answer.status_code == 409 and answer.json()["code"] == "already_moved"
    assert answer.status_code == 202 or done, answer.text


def is_moved(product: Product, stream: str) -> bool:
    answer = product.client.get(f"/streams/{stream}/move")
    assert answer.status_code == 404 or answer.json()["phase"] in ("copying", "completed"), answer.text
    return bool(product.client.get(f"/streams/{stream}").json()["spec"].get("storage") == "kafka")


def test_a_stream_moves_under_its_flows(product: Product, broker: Kafka) -> None:
    """HTTP → pipeline → stream → task → stream; first a move without a kill, and then one of each process."""
    lay_pipes(product, "moved_")
    sender = Sender(product, "moved_numbers")
    try:
        with sender.sending():
            wait_for_more(product)
            runs = {name: attempts(product, name) for name in ("pipelines/moved_in", "tasks/moved_copy")}
            move(product, "moved_first")
            wait_for("the move", lambda: is_moved(product, "moved_first"))
            wait_for_more(product)
            assert runs == {name: attempts(product, name) for name in runs}, "no flow has failed"
            move(product, "moved_second")
            time.sleep(random.uniform(0, 0.3))
            product.kill_server()
            product.up()
            move(product, "moved_second")
            wait_for("the move", lambda: is_moved(product, "moved_second"))
            product.kill_worker()
            wait_for_more(product)
        wait_for("all events", lambda: arrived(product) >= sender.acknowledged)
        for stream in ("moved_first", "moved_second"):
            assert numbers_in(product, stream) == list(range(sender.acknowledged)), "each once, in order"
    finally:
        for place in (
            "tasks/moved_copy",
            "pipelines/moved_in",
            "streams/moved_second",
            "streams/moved_first",
        ):
            answer = product.client.delete(f"/{place}")
            assert answer.status_code in (200, 204), answer.text
    wait_for("no topics", lambda: not [topic for topic in broker.topics() if "moved_" in topic])


def attempts(product: Product, place: str) -> list[object]:
    """The failed attempts of a flow."""
    return list(product.client.get(f"/{place}").json()["attempts"])
