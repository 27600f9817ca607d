"""The `websocket` source against a real server."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from penstock.connectors.received import Receiver
from penstock.connectors.websocket import WebsocketSource
from penstock.engine.plan.connections import probe_connector
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.testing.flows import Bench, wait_until
from penstock.testing.source_suite import Events, SourceSuite, SourceSystem
from tests.flows import NO_STREAMS
from tests.websocket_server import TOKEN, Feed, websocket_feed

COLUMNS = "id BIGINT, name STRING"
HELLO = {"op": "subscribe", "channel": "all"}


@pytest.fixture
def feed() -> Iterator[Feed]:
    with websocket_feed() as feed:
        yield feed


def source(feed: Feed, **fields: Any) -> WebsocketSource:
    given = {"type": "websocket", "url": feed.url, "subscribe": [HELLO], "schema": COLUMNS}
    return WebsocketSource.model_validate({**given, "timeout_ms": 2000, **fields})


def opened(feed: Feed, **fields: Any) -> Receiver:
    receiver = source(feed, **fields).receiver(NO_STREAMS)
    receiver.open(None)
    return receiver


def events(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 10
    while len(found) < count:
        assert time.monotonic() < deadline, found
        received = receiver.receive(0.2)
        found += received.events.to_pylist() if received is not None else []
    return found


def test_messages_are_events(feed: Feed) -> None:
    receiver = opened(feed, key="name")
    assert receiver.receive(0.05) is None
    for message in ('{"id": 1, "name": "ü"}', b'{"id": 2, "name": 5}', '{"id": 3}', "no json", "[", b"\xff"):
        feed.put(message)
    found = events(receiver, 6)
    assert [row["value"] for row in found] == [
        '{"id": 1, "name": "ü"}'.encode(), b'{"id": 2, "name": 5}', b'{"id": 3}', b"no json", b"[", b"\xff",
    ]  # fmt: skip
    assert [row["_key"] for row in found] == ["ü".encode(), b"5", None, None, None, None]
    receiver.close()
    assert [json.loads(each) for each in feed.subscribed] == [HELLO]


def test_many_messages_are_gathered(feed: Feed) -> None:
    receiver = opened(feed)
    for number in range(3000):
        feed.put(str(number))
    rows, appends = 0, 0
    while rows < 3000:
        received = receiver.receive(2)
        assert received is not None
        rows, appends = rows + received.events.num_rows, appends + 1
    assert appends < 600
    receiver.close()


def test_messages_before_the_end_of_a_connection_are_kept(feed: Feed) -> None:
    receiver = opened(feed)
    feed.put("1")
    feed.put("2")
    wait_until("they are sent", feed.waiting.empty, 5)
    time.sleep(0.1)
    feed.disconnect()
    assert [row["value"] for row in events(receiver, 2)] == [b"1", b"2"]
    with pytest.raises(Unavailable, match="1012 restart") as caught:
        receiver.receive(1)
    assert caught.value.problems[0].code == "websocket_closed"
    receiver.close()


def test_a_server_that_answers_no_ping_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def shake_hands() -> None:
            from websockets.server import ServerProtocol

            connection, _ = server.accept()
            held.append(connection)
            protocol = ServerProtocol()
            protocol.receive_data(connection.recv(65536))
            (request,) = protocol.events_received()
            protocol.send_response(protocol.accept(request))  # type: ignore[arg-type]
            for data in protocol.data_to_send():
                connection.sendall(data)
            # From here on it is silent, as a machine that has lost its power.

        threading.Thread(target=shake_hands, daemon=True).start()
        url = f"ws://127.0.0.1:{server.getsockname()[1]}"
        given = {"type": "websocket", "url": url, "schema": COLUMNS, "ping_ms": 200}
        receiver = WebsocketSource.model_validate(given).receiver(NO_STREAMS)
        receiver.open(None)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            events(receiver, 1)
        assert time.monotonic() - began < 5
        receiver.close()
        for connection in held:
            connection.close()


def test_a_message_that_is_too_large_ends_the_connection(feed: Feed) -> None:
    receiver = opened(feed, max_message_bytes=100)
    feed.put("x" * 200)
    with pytest.raises(Unavailable, match="1009"):
        events(receiver, 1)
    receiver.close()


def test_logins_and_subprotocols(feed: Feed) -> None:
    login = {"url": f"{feed.url}/closed", "auth": {"bearer": TOKEN}, "subprotocols": ["v3", "v2"]}
    opened(feed, **login).close()
    wait_until("the connection", lambda: feed.protocols, 5)
    assert feed.protocols == ["v2"]


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"url": "ws://127.0.0.1:9"}, Unavailable, "http_unreachable"),
        ({"url": "ws://no-such-host.invalid"}, Unavailable, "unknown_host"),
        ({"url": "/closed"}, Invalid, "http_unauthorized"),
        ({"url": "/closed", "auth": {"bearer": "wrong"}}, Invalid, "http_unauthorized"),
        ({"url": "/nothing"}, Invalid, "http_not_found"),
        ({"url": "wss", "tls": {}}, Invalid, "http_tls"),
    ],
)
def test_errors(feed: Feed, fields: dict[str, Any], error: type[PenstockError], code: str) -> None:
    if not fields["url"].startswith("ws://"):
        path = fields["url"].removeprefix("wss")
        fields = {**fields, "url": (feed.url if path else feed.url.replace("ws:", "wss:")) + path}
    with pytest.raises(error) as caught:
        opened(feed, **fields)
    (problem,) = caught.value.problems
    assert (problem.code, bool(problem.path), bool(problem.hint)) == (code, True, True)
    assert "wrong" not in problem.message


def test_a_missing_package_is_named(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    with pytest.raises(Invalid) as caught:
        opened(feed)
    assert caught.value.problems[0].hint == "pip install 'penstock[websocket]'"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "https://x/"}, "ws:// or wss://"),
        ({"url": "wss://u:p@x/"}, "use 'auth'"),
        ({"headers": {"Authorization": "x"}, "auth": {"bearer": "x"}}, "either 'auth'"),
    ],
)
def test_settings_that_cannot_work(fields: dict[str, Any], message: str) -> None:
    given = {"type": "websocket", "url": "wss://x/", "schema": COLUMNS, **fields}
    with pytest.raises(ValidationError, match=message):
        WebsocketSource.model_validate(given)


class Place(SourceSystem):
    """A feed. A kill is not tested: the protocol cannot send again what was lost with the process."""

    killable = False
    outage_s = 20.0

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {"type": "websocket", "url": self.feed.url, "subscribe": [HELLO], "schema": COLUMNS}
        return {**given, "timeout_ms": 2000, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        for event in events:
            self.feed.put(json.dumps(event))

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(url="ws://127.0.0.1:9"), "http_unreachable"),
            "login": (self.spec(url=f"{self.feed.url}/closed"), "http_unauthorized"),
        }

    def stop(self) -> None:
        self.feed.stop()

    def start(self) -> None:
        self.feed.start()


@pytest.mark.slow
class TestWebsocketSource(SourceSuite):
    @pytest.fixture
    def system(self, feed: Feed) -> Place:
        return Place(feed)

    def test_keys_go_along(self, bench: Bench, system: Place) -> None:
        system.put([{"id": 1, "name": "a"}])
        assert bench.stream("copy") == []
        with bench.running(system.spec(key="name"), {"type": "stream", "stream": "copy"}):
            wait_until("the event", lambda: bench.stream("copy"))
        assert [row["_key"] for row in bench.stream("copy")] == [b"a"]


def test_the_connection_test(spark: SparkSession, feed: Feed) -> None:
    for number in range(9):
        feed.put(f'{{"id": {number}}}')
    place = Place(feed)
    found = probe_connector("source", place.spec(), NO_STREAMS, spark, {})
    assert found.problems == []
    assert found.sample == [{"value": f'{{"id": {number}}}'} for number in range(5)]
    for wrong, code in place.wrong().values():
        (problem,) = probe_connector("source", wrong, NO_STREAMS, spark, {}).problems
        assert (problem.code, bool(problem.hint)) == (code, True)
