"""Streams in Kafka: what only they do."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Invalid, Unavailable
from penstock.settings import KafkaSaslSettings, KafkaSettings, KafkaTlsSettings
from penstock.specs.stream import StreamSpec
from penstock.streams.home import StreamHome
from penstock.streams.kafka import journal as journals
from penstock.streams.kafka.clients import clients
from penstock.streams.kafka.cluster import Cluster, topic_of
from penstock.streams.kafka.state import State, Void
from penstock.streams.kafka.storage import KafkaStorage
from penstock.streams.kafka.topics import FRAMES, JOURNAL
from penstock.streams.log import Log
from penstock.streams.repair.repair import repair
from penstock.streams.repair.verify import verify
from penstock.streams.storage import Appended, Cursor, Damaged, Producer, WriteFailed
from tests.cli.commands import wait_for
from tests.kafka_server import PASSWORD, SCRAM_PASSWORD, USER, Kafka
from tests.streams.kit import change, cluster_of, events, make_stream, opened, raw, values
from tests.streams.test_storage_contract import names, write


@contextmanager
def stream(broker: Kafka, directory: Path, **spec: Any) -> Iterator[KafkaStorage]:
    made = make_stream(directory / "s", storage="kafka", kafka=cluster_of(broker.address), **spec)
    with opened(made) as log:
        assert isinstance(log.storage, KafkaStorage)
        yield log.storage


def ends(broker: Kafka, topic: str, partition: int) -> tuple[int, int]:
    """The offsets of a partition that the broker has."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "ends", "log_level": 0})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
    consumer.close()
    return low, high


def test_an_entry_that_names_removed_frames_counts_for_nothing() -> None:
    """A writer that was overtaken by retention writes its frames again."""
    state = State()
    done = state.apply([["shape", "x", ""], ["write", 1, [[0, 2, 9, 9, "x"], [3, 1, 9, 9, "x"]], None, []]])
    assert done == [None, Appended(0, 2 + 1)]
    state.apply([["trim", 3, "evicted_retention_ms"]])
    assert (state.first, state.floor) == (3, 4)
    late = [["count", {"damaged": 1}], ["write", 2, [[2, 1, 9, 9, "x"]], ["p", 0, 0, None, None], []]]
    assert isinstance(state.apply(late), Void)
    assert (state.next, state.counts["damaged"], state.producers.known) == (3, 0, {})
    assert state.apply([["write", 2, [[6, 1, 9, 9, "x"]], None, []]]) == [Appended(3, 4)]
    # The frame of an entry that removes all others was written before them, and stays.
    both = [["trim", 4, "evicted_retention_bytes"], ["write", 2, [[5, 1, 9, 9, "x"]], None, []]]
    assert state.apply(both) == [None, Appended(4, 5)]
    assert state.floor == 5
    again = State.restored(state.snapshot())
    assert vars(again) | {"producers": 0} == vars(state) | {"producers": 0}


def test_snapshots_cut_the_journal_and_readers_follow(
    broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_ENTRIES", 10)
    with stream(broker, tmp_path) as storage, opened(tmp_path / "s") as asleep:
        write(storage, events(2), producer=Producer("p", 5, 3))
        storage.move_cursor(Cursor("r", 1, epoch=4))
        for number in range(2, 30):
            write(storage, events(1, number))
            storage.maintain()
        assert ends(broker, storage.topic, JOURNAL)[0] >= 10
        write(storage, events(1, 30))
        with opened(tmp_path / "s") as later:
            for log in (later, asleep):  # one that begins now, and one that has not looked since the start
                assert values(log) == names(0, 31)
                assert log.storage.cursors() == storage.cursors()
                again = log.append(events(2), producer=Producer("p", 5, 3))
                assert again == Appended(0, 2, duplicate=True)


def test_removed_events_are_removed_from_the_broker(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path) as storage:
        for number in range(5):
            write(storage, events(1, number))
        (gone, *_) = storage.spans(0)
        change(tmp_path / "s", wal={"retention_ms": 1})
        storage.maintain()
        assert ends(broker, storage.topic, FRAMES) == (5, 5)
        with pytest.raises(Damaged, match="evicted"):
            storage.fetch(gone)
        write(storage, events(1, 5))
        assert next(Log(storage).read(2)).lost == "evicted"
        assert values(Log(storage)) == names(5, 6)


def test_frames_that_others_remove_are_a_defined_answer(broker: Kafka, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    with stream(broker, tmp_path) as storage:
        for number in range(4):
            write(storage, events(10, 10 * number))
        clients(storage.cluster).admin.delete_records([TopicPartition(storage.topic, FRAMES, 2)])[
            TopicPartition(storage.topic, FRAMES)
        ].result(10)
        found = [(chunk.base, chunk.next, chunk.lost) for chunk in Log(storage).read(0)]
        assert found == [(0, 10, "missing"), (10, 20, "missing"), (20, 30, None), (30, 40, None)]
    (fault,) = verify(tmp_path / "s").faults
    assert (fault.kind, fault.first, fault.next) == ("missing", 0, 20)
    done = repair(tmp_path / "s")
    assert not done.repaired
    assert "only the brokers can repair it" in done.left[0].message


def test_a_sound_stream_is_verified(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path) as storage:
        write(storage, events(100), events(50, 100))
    report = verify(tmp_path / "s")
    assert (report.sound, report.events) == (True, 150)
    assert not repair(tmp_path / "s").left


def test_settings_of_a_stream_reach_its_topic(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path, wal={"sync": True, "segment_bytes": 5_000_000}) as storage:
        write(storage, events(1))
        assert settings_of(broker, storage.topic) == {"flush.messages": "1", "segment.bytes": "5000000"}
        change(tmp_path / "s", wal={"sync": False})
        storage.maintain()
        assert settings_of(broker, storage.topic)["flush.messages"] == str(2**63 - 1)


def settings_of(broker: Kafka, topic: str) -> dict[str, str]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = broker._admin().describe_configs([resource])[resource].result(10)
    return {name: found[name].value for name in ("flush.messages", "segment.bytes")}


def test_a_home_makes_and_removes_topics(broker: Kafka, tmp_path: Path) -> None:
    kafka = cluster_of(broker.address)
    home = StreamHome(tmp_path / "streams", tmp_path / "memory", kafka=kafka)
    spec = StreamSpec(schema_="id BIGINT", storage="kafka")
    directory = home.ensure("task:a b", "0123456789", spec)
    topics = [topic_of(kafka, name, "01234567") for name in ("task:a b", "task:a b.dead")]
    for place in (directory, home.directory("task:a b.dead", "0123456789")):
        with opened(place):
            pass
    assert set(topics) <= set(broker.topics())
    assert [path.name for path in directory.iterdir()] == ["stream.json"]
    home.remove("task:a b", "0123456789")
    wait_for("the topics to be gone", lambda: not set(topics) & set(broker.topics()))
    assert not directory.exists()
    with pytest.raises(Invalid) as refused:
        StreamHome(tmp_path / "streams", tmp_path / "memory").ensure("s", "0", spec)
    assert refused.value.problems[0].code == "no_kafka"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_login_is_taken_from_a_variable(
    broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    encrypted = mechanism != "PLAIN"
    settings = KafkaSettings(
        brokers=broker.tls_address if encrypted else broker.sasl_address,
        prefix=cluster_of("").prefix,
        replication=1,
        tls=KafkaTlsSettings(enabled=encrypted, ca_file=str(broker.ca_file)),
        sasl=KafkaSaslSettings(mechanism=mechanism, username=USER, password="${STREAM_PASSWORD}"),  # type: ignore[arg-type]
    )
    make_stream(tmp_path / "s", storage="kafka", kafka=Cluster.of(settings))
    password = SCRAM_PASSWORD if encrypted else PASSWORD
    assert password not in (tmp_path / "s" / "stream.json").read_text()
    with pytest.raises(Unavailable, match="STREAM_PASSWORD"):
        KafkaStorage(tmp_path / "s")
    monkeypatch.setenv("STREAM_PASSWORD", password)
    with opened(tmp_path / "s") as log:
        log.append(events(2))
        assert values(log) == names(0, 2)


def test_a_broker_that_is_not_there_is_an_error_in_time(
    tmp_path: Path, broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("clients", "cluster", "journal", "topics", "bodies"):
        monkeypatch.setattr(f"penstock.streams.kafka.{module}.ANSWER_S", 1.0)
    monkeypatch.setattr("penstock.streams.kafka.topics.MADE_S", 1.0)
    make_stream(tmp_path / "s", storage="kafka", kafka=Cluster("127.0.0.1:9"))
    with pytest.raises(Unavailable, match="is not responding"):
        KafkaStorage(tmp_path / "s")
    report = verify(tmp_path / "s")
    assert "can't be read" in report.faults[0].message


def test_a_frame_that_kafka_does_not_take_is_refused(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path) as storage:
        with pytest.raises(WriteFailed, match="exceeds the limit of a stream in Kafka"):
            write(storage, raw([random.randbytes(70_000_000)]))
        assert write(storage, events(1)) == Appended(0, 1)


def test_a_journal_names_the_stored_columns_once(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path) as storage:
        for number in range(3):
            write(storage, events(1, number))
        entries = [
            json.loads(each.value()) for each in broker.records(storage.topic, 6) if each.partition() == 0
        ]
        shapes = [op for entry in entries for op in entry["ops"] if op[0] == "shape"]
        assert len(entries) == 3
        assert len(shapes) == 1


def test_a_broker_that_was_killed_is_found_again(broker: Kafka, tmp_path: Path) -> None:
    with stream(broker, tmp_path) as storage, opened(tmp_path / "s") as other:
        write(storage, events(3))
        assert values(other) == names(0, 3)
        broker.kill()
        broker.start()
        assert write(storage, events(3, 3)) == Appended(3, 6)
        assert values(other) == names(0, 6)
        storage.maintain()
