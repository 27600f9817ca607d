"""The `nats` connectors against a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.nats.client import covers
from penstock.connectors.nats.receiver import NatsReceiver
from penstock.connectors.nats.source import NatsSource
from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole
from penstock.testing.flows import Bench, files, to_files, wait_until
from penstock.testing.sink_suite import SOURCE, SinkSuite
from penstock.testing.source_suite import SOME, Events, SourceSuite, ids
from tests.messaging import COLUMNS, LOGIN, WRONG_LOGIN, QueuePlace, QueueTarget, codes, probe
from tests.nats_server import EncryptedNats, Nats


class NatsTarget(QueueTarget):
    def __init__(self, server: Nats, **stream: Any) -> None:
        self.server, self.stream = server, server.stream(**stream)

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "nats", "servers": [self.server.address], "subject": f"{self.stream}.all",
            "max_event_bytes": 1000,
        }  # fmt: skip
        return {**given, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [json.loads(message.data) for message in self.server.messages(self.stream)]

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(servers=["127.0.0.1:9"]), "unreachable"),
            "host": (self.spec(servers=["no-such-host.invalid:4222"]), "unknown_host"),
            "login": (self.spec(security=WRONG_LOGIN), "nats_login"),
            "tls": (self.spec(security={"tls": {}, **LOGIN}), "nats_tls"),
            "stream": (self.spec(subject="no.such.stream"), "unknown_stream"),
        }


class NatsPlace(QueuePlace):
    lag = True

    def __init__(self, server: Nats, **stream: Any) -> None:
        self.server, self.stream = server, server.stream(**stream)

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "nats", "servers": [self.server.address], "jetstream": self.stream, "schema": COLUMNS,
            "prefetch": 50,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        given = {**(headers or {}), **({"Penstock-Key": key} if key else {})}
        self.server.send(f"{self.stream}.x", *map(dict, events), headers=given)

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        moment = self.server.time_of(self.stream, 250)
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "offset": ("offset:291", 10),
            "time": (f"time:{moment}", len(SOME) - 249),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(servers=["127.0.0.1:9"]), "unreachable"),
            "login": (self.spec(security=WRONG_LOGIN), "nats_login"),
            "stream": (self.spec(jetstream="none"), "unknown_stream"),
            "subject": (self.spec(subject="other"), "unknown_subject"),
        }


class TestNatsSource(SourceSuite):
    @pytest.fixture
    def system(self, nats_server: Nats) -> NatsPlace:
        return NatsPlace(nats_server)


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_streams_that_remove_what_was_read(retention: str, bench: Bench, nats_server: Nats) -> None:
    place = NatsPlace(nats_server, retention=retention)
    out = bench.root / "out"
    with bench.running(place.spec(), to_files(out)) as kept:
        wait_until("the start", lambda: kept.state.ops.get("lag_events") == 0)
        place.put(SOME[:100])
        wait_until("the first events", lambda: len(files(out)) >= 100)
        wait_until("an empty stream", lambda: nats_server.count(place.stream) == 0)
    place.put(SOME[100:])
    with bench.running(place.spec(), to_files(out)):
        wait_until("the other events", lambda: len(files(out)) >= len(SOME))
        wait_until("an empty stream", lambda: nats_server.count(place.stream) == 0)
    assert ids(files(out)) == ids(SOME)


def test_a_lost_acknowledgement_leaves_nothing_in_a_work_queue(nats_server: Nats) -> None:
    place = NatsPlace(nats_server, retention="workqueue")
    place.put(SOME[:20])
    source = NatsSource.model_validate(place.spec())
    receiver, position, found = NatsReceiver(source, "pipeline:x"), None, 0
    receiver.open(None)
    while found < 20:
        received = receiver.receive(20)
        assert received is not None, f"{found} events came"
        position, found = received.position, found + received.events.num_rows
    receiver.close()
    again = NatsReceiver(source, "pipeline:x")
    again.open(position)
    assert again.receive(2) is None
    again.close()
    assert nats_server.count(place.stream) == 0


def test_one_subject_of_a_stream(bench: Bench, nats_server: Nats) -> None:
    place = NatsPlace(nats_server)
    for number in range(6):
        nats_server.send(f"{place.stream}.{number % 2}.x", {"id": number})
    spec = place.spec(subject=f"{place.stream}.1.*", subject_header="from", metadata=True, schema="id BIGINT")
    out = bench.root / "out"
    with bench.running(spec, to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= 3)
    assert ids(files(out)) == [1, 3, 5]
    assert {event["_headers"]["from"] for event in files(out)} == {f"{place.stream}.1.x"}


@pytest.mark.parametrize("gap", ["skip", "fail"])
def test_messages_that_were_removed(gap: str, bench: Bench, nats_server: Nats) -> None:
    place = NatsPlace(nats_server, max_msgs=50)
    place.put(SOME[:20])
    out = bench.root / "out"
    with bench.running(place.spec(gap=gap), to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= 20)
    place.put(SOME[20:])
    if gap == "fail":
        error = bench.run(place.spec(gap=gap), to_files(out)).error or {}
        assert (error["code"], error["path"]) == ("gap", "spec.source.gap")
        assert "21 to 250" in error["message"]
        return
    with bench.running(place.spec(gap=gap), to_files(out)):
        wait_until("the last event", lambda: 299 in ids(files(out)))
    assert ids(files(out)) == [*range(20), *range(250, 300)]


def test_a_stream_that_was_made_anew(bench: Bench, nats_server: Nats) -> None:
    place = NatsPlace(nats_server)
    place.put(SOME[:20])
    out = bench.root / "out"
    with bench.running(place.spec(), to_files(out)):
        wait_until("the events", lambda: len(files(out)) >= 20)
    nats_server.do(lambda js: js.delete_stream(place.stream))
    nats_server.do(lambda js: js.add_stream(name=place.stream, subjects=[f"{place.stream}.>"]))
    assert (bench.run(place.spec(), to_files(out)).error or {})["code"] == "other_stream"


class TestNatsSink(SinkSuite):
    @pytest.fixture
    def system(self, nats_server: Nats) -> NatsTarget:
        return NatsTarget(nats_server)


def test_repeats_within_the_window_are_dropped(bench: Bench, nats_server: Nats) -> None:
    target = NatsTarget(nats_server)
    SinkSuite().test_a_repeated_batch_meets_the_guarantee(bench, target)
    assert len(nats_server.messages(target.stream)) == 1000


def test_a_message_has_the_key_and_the_headers(bench: Bench, nats_server: Nats) -> None:
    target = NatsTarget(nats_server)
    row = {
        "id": "seq", "to": "concat('x', seq)", "_key": "concat('k', seq)",
        "_headers": "map('h', 'ä', 'Nats-Msg-Id', 'mine')",
    }  # fmt: skip
    state = bench.run(
        {"type": "generate", "count": 2, "row": row}, target.spec(subject=f"{target.stream}.{{to}}")
    )
    assert state.outcome == "completed", state.error
    found = nats_server.messages(target.stream)
    assert [message.subject for message in found] == [f"{target.stream}.x0", f"{target.stream}.x1"]
    assert json.loads(found[1].data) == {"id": 1, "to": "x1"}
    headers = dict(found[1].headers)
    assert headers.pop("Nats-Msg-Id").startswith("suite.nats.0.")
    assert headers == {"h": "ä", "Penstock-Key": "k1"}


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"to": "'a b'"}, "invalid_subject"),
        ({"to": "'a..b'"}, "invalid_subject"),
        ({"to": "CAST(NULL AS STRING)"}, "invalid_subject"),
        ({"_key": "unhex('ff')"}, "invalid_header"),
        ({"_headers": "map('a b', 'x')"}, "invalid_header"),
        ({"_headers": "map('a', ' x')"}, "invalid_header"),
        ({"name": "repeat('x', 199900)"}, "too_large"),
    ],
)
def test_what_cannot_be_sent_is_a_letter(
    columns: dict[str, str], code: str, bench: Bench, nats_server: Nats
) -> None:
    target = NatsTarget(nats_server)
    source = {**SOURCE, "count": 1, "row": {"id": "seq", "to": "'ok'", **columns}}
    spec = target.spec(subject=f"{target.stream}.{{to}}", max_event_bytes=1_000_000)
    state = bench.run(source, spec)
    assert state.outcome == "completed", state.error
    (letter,) = bench.letters()
    assert (letter["code"], json.loads(letter["event"])["id"]) == (code, 0)
    assert target.received(bench) == []


def test_equal_events_of_a_batch_are_all_delivered(bench: Bench, nats_server: Nats) -> None:
    target = NatsTarget(nats_server)
    state = bench.run({"type": "generate", "count": 20, "row": {"id": "5"}}, target.spec())
    assert state.outcome == "completed", state.error
    assert target.received(bench) == [{"id": 5}] * 20


def test_a_subject_that_no_stream_takes_is_a_letter(bench: Bench, nats_server: Nats) -> None:
    target = NatsTarget(nats_server)
    row = {"id": "seq", "to": f"IF(seq = 0, 'no-stream', '{target.stream}')"}
    state = bench.run({"type": "generate", "count": 3, "row": row}, target.spec(subject="{to}.x"))
    assert state.outcome == "completed", state.error
    assert [letter["code"] for letter in bench.letters()] == ["unknown_stream"]
    assert [event["id"] for event in target.received(bench)] == [1, 2]


def test_a_full_stream_makes_the_flow_wait(bench: Bench, nats_server: Nats) -> None:
    target = NatsTarget(nats_server, max_msgs=50, discard="new", retention="workqueue")
    kept = bench.keeper({**SOURCE, "count": 100}, target.spec(), batch={"max_events": 10})
    kept.start()
    until = time.monotonic() + 60
    found: set[int] = set()

    async def take(js: Any) -> None:
        subscription = await js.pull_subscribe(f"{target.stream}.>", "taker", stream=target.stream)
        while len(found) < 100 and time.monotonic() < until:
            try:
                messages = await subscription.fetch(10, timeout=1)
            except TimeoutError:
                continue
            for message in messages:
                found.add(json.loads(message.data)["id"])
                await message.ack()

    nats_server.do(take)
    kept.join(60)
    assert kept.state.outcome == "completed", kept.state
    assert found == set(range(100))


def probed(spark: SparkSession, role: ConnectorRole, server: Nats, **spec: Any) -> Probe:
    return probe(spark, role, **{"type": "nats", "servers": [server.address], **spec})


def test_the_connection_test_of_the_sink(spark: SparkSession, nats_server: Nats) -> None:
    stream = nats_server.stream()
    found = probed(spark, "sink", nats_server, subject=f"{stream}.x")
    assert found.problems == []
    assert stream in found.offers["streams"]
    assert f"{stream}.>" in found.offers["subjects"]
    assert codes(probed(spark, "sink", nats_server, subject="no.stream")) == [("unknown_stream", "subject")]
    assert codes(probed(spark, "sink", nats_server, subject="x", security=WRONG_LOGIN)) == [
        ("nats_login", "security.login")
    ]
    assert codes(probed(spark, "sink", nats_server, subject="x", servers=["127.0.0.1:9"])) == [
        ("unreachable", "servers")
    ]


def test_the_connection_test_of_the_source(spark: SparkSession, nats_server: Nats) -> None:
    stream = nats_server.stream()
    nats_server.send(f"{stream}.x", *({"id": i} for i in range(8)))
    found = probed(spark, "source", nats_server, jetstream=stream, schema=COLUMNS)
    assert found.problems == []
    assert [json.loads(row["value"])["id"] for row in found.sample] == [3, 4, 5, 6, 7]
    assert codes(probed(spark, "source", nats_server, jetstream="none", schema=COLUMNS)) == [
        ("unknown_stream", "jetstream")
    ]


@pytest.mark.slow
def test_tls_and_a_login(bench: Bench, tmp_path: Path) -> None:
    with EncryptedNats.run() as server:
        target = NatsTarget(server)
        tls = {"ca_file": str(server.home / "server.pem")}
        state = bench.run({**SOURCE, "count": 10}, target.spec(security={"tls": tls, **LOGIN}))
        assert state.outcome == "completed", state.error
        assert len(target.received(bench)) == 10
        for name, security in {"untrusted": {"tls": {}, **LOGIN}, "absent": LOGIN}.items():
            spec = target.spec(security=security, retries=0)
            error = bench.part(name).run(SOURCE, spec, restart={"policy": "never"}).error or {}
            assert (error["code"], error["path"]) == ("nats_tls", "spec.sinks[0].security.tls"), error


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("a.*", "a.>", False),
        ("a.>", "a.*.b", True),
        ("a.b", "a.*", False),
    ],
)
def test_subjects_within_patterns(pattern: str, subject: str, expected: bool) -> None:
    assert covers(pattern, subject) is expected
