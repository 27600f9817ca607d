"""Order, slow services, outages and the end of deliveries by HTTP, without Spark."""

from __future__ import annotations

import json
import threading
import time

import pytest

from penstock.connectors.messages.sink import Message
from penstock.errors import Retryable, Unavailable
from tests.http_deliveries import FIRST, SECOND, SITE, Given, deliver, events, ids, sink
from tests.http_server import Asked, Said, Server


def test_requests_at_once_keep_the_order_per_key(server: Server) -> None:
    def answer(asked: Asked) -> Said:
        time.sleep(0.01)
        return Said()

    server.answer = answer
    keyed = [
        Message(f"{server.url}/", json.dumps({"id": i}).encode(), key=f"k{i % 7}".encode())
        for i in range(140)
    ]
    assert deliver(sink(server, concurrency=4), keyed).events == 140
    assert 1 < server.most <= 4
    found = ids(server.asked)
    assert sorted(found) == list(range(140))
    for key in range(7):
        assert (of_key := [i for i in found if i % 7 == key]) == sorted(of_key)
    server.most = 0
    deliver(sink(server), keyed, SECOND)
    assert server.most == 1


def test_events_without_a_key_are_spread(server: Server) -> None:
    together = threading.Barrier(3)

    def answer(asked: Asked) -> Said:
        together.wait(20)
        return Said()

    server.answer = answer
    deliver(sink(server, concurrency=3, body="lines", max_events=2), events(server, 6))
    assert sorted(ids(server.asked)) == [[0, 1], [2, 3], [4, 5]]


def test_a_slow_service_is_not_late_while_it_accepts(server: Server) -> None:
    gate = threading.Semaphore(0)

    def answer(asked: Asked) -> Said:
        gate.acquire(timeout=20)
        return Said()

    server.answer = answer
    writer = sink(server, timeout_ms=2000).open(SITE)
    thread = threading.Thread(target=lambda: writer.write(Given(events(server, 3)), FIRST), daemon=True)
    thread.start()
    time.sleep(0.5)
    assert not writer.waiting, "nothing was accepted yet"
    gate.release()
    time.sleep(0.5)
    assert writer.waiting
    gate.release(5)
    thread.join(10)
    assert not writer.waiting
    writer.close()


@pytest.mark.parametrize("silent", ["before the answer", "within the answer"])
def test_a_service_that_is_slow(server: Server, silent: str) -> None:
    done = threading.Event()

    def answer(asked: Asked) -> Said:
        if silent == "before the answer":
            done.wait(10)
        return Said("x" * 100, pause_s=0.1)

    server.answer = answer
    began = time.monotonic()
    with pytest.raises(Unavailable, match="within 300 ms"):
        deliver(sink(server, timeout_ms=300), events(server, 1))
    assert time.monotonic() - began < 5
    done.set()


def test_a_cancelled_writer_ends_at_once(server: Server) -> None:
    done = threading.Event()

    def answer(asked: Asked) -> Said:
        done.wait(20)
        return Said()

    server.answer = answer
    writer = sink(server, timeout_ms=20_000).open(SITE)
    threading.Timer(0.3, writer.cancel).start()
    began = time.monotonic()
    with pytest.raises(Retryable):
        writer.write(Given(events(server, 3)), FIRST)
    assert time.monotonic() - began < 3
    done.set()
    writer.close()


def test_a_process_that_lost_its_lease_sends_nothing_more(server: Server) -> None:
    def permitted() -> None:
        if len(server.asked) == 2:
            raise Retryable("the lease is lost")

    writer = sink(server).open(SITE)
    writer.permitted = permitted
    with pytest.raises(Retryable, match="lease"):
        writer.write(Given(events(server, 5)), FIRST)
    assert len(server.asked) == 2
    writer.close()


def test_an_outage_and_an_unknown_host(server: Server) -> None:
    server.stop()
    with pytest.raises(Unavailable, match="connection refused") as caught:
        deliver(sink(server), events(server, 1))
    assert caught.value.problems[0].code == "http_unreachable"
    with pytest.raises(Unavailable, match="can't be resolved") as caught:
        deliver(sink(server), [Message("http://no-such-host.invalid/x", b"{}")])
    assert caught.value.problems[0].code == "unknown_host"


def test_errors_show_no_path_and_no_query(server: Server) -> None:
    server.answer = lambda _: Said(status=500)
    with pytest.raises(Unavailable) as caught:
        deliver(sink(server), events(server, 1, "/hooks/T0P?token=s3cret"))
    assert "T0P" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
