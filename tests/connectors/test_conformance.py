"""The conformance suites on the connectors of Penstock, each against its real system."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from penstock.specs.catalog import catalog
from penstock.specs.stream import StreamSpec
from penstock.testing.flows import Bench, files
from penstock.testing.sink_suite import COUNT, SinkSuite, SinkSystem
from penstock.testing.source_suite import SOME, Events, SourceSuite, SourceSystem
from tests.kafka_server import KAFKA, PASSWORD, USER, Kafka
from tests.s3_server import PASSWORD as S3_PASSWORD
from tests.s3_server import REGION, S3
from tests.s3_server import USER as S3_USER
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow

COLUMNS = "id BIGINT, name STRING"
QUICK_READER = {"request.timeout.ms": "1500", "default.api.timeout.ms": "2000"}
QUICK_WRITER = {"max.block.ms": "2000", "request.timeout.ms": "1000", "delivery.timeout.ms": "2000"}
WRONG_LOGIN = {"sasl": {"mechanism": "PLAIN", "username": USER, "password": PASSWORD[:-1]}}


class KafkaPlace(SourceSystem):
    keyed = lag = True
    outage_s = 60.0

    def __init__(self, broker: Kafka) -> None:
        self.broker, self.topic = broker, broker.topic(2)

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "kafka", "brokers": [self.broker.address], "topics": [self.topic], "schema": COLUMNS,
            "options": QUICK_READER,
        }  # fmt: skip
        return {**given, **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        made = [(name, value.encode()) for name, value in (headers or {}).items()]
        for event in events:
            time_ms = 1_000_000 + event["id"]
            self.broker.send(
                self.topic, event, key=key, headers=made, partition=event["id"] % 2, time_ms=time_ms
            )

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        half = len(SOME) // 2
        return {
            "earliest": ("earliest", len(SOME)),
            "latest": ("latest", 0),
            "time": ("time:1970-01-01T00:16:40.250Z", len(SOME) - 250),
            "offsets": ({self.topic: {0: half - 10, 1: half - 10}}, 20),
        }

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "address": (self.spec(brokers=["127.0.0.1:9"]), "kafka_unreachable"),
            "login": (self.spec(brokers=[self.broker.sasl_address], security=WRONG_LOGIN), "kafka_login"),
            "topic": (self.spec(topics=["no-such-topic"]), "unknown_topic"),
        }

    def stop(self) -> None:
        self.broker.kill()

    def start(self) -> None:
        self.broker.start()


class TestKafkaSource(SourceSuite):
    @pytest.fixture
    def system(self, broker: Kafka) -> KafkaPlace:
        return KafkaPlace(broker)


class KafkaTarget(SinkSystem):
    keyed = True
    outage_s = 60.0

    def __init__(self, broker: Kafka) -> None:
        self.broker, self.topic = broker, broker.topic(2)

    def spec(self, **fields: Any) -> dict[str, Any]:
        given = {
            "type": "kafka", "brokers": [self.broker.address], "topic": self.topic, "options": QUICK_WRITER,
            "max_event_bytes": 1000,
        }  # fmt: skip
        return {**given, **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [json.loads(record.value()) for record in self.broker.records(self.topic, 3 * COUNT, 3)]

    def bad(self) -> tuple[dict[str, str], str]:
        return {"name": "repeat('x', CAST(seq % 2 AS INT) * 2000)"}, "too_large"

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {
            "login": (self.spec(brokers=[self.broker.sasl_address], security=WRONG_LOGIN), "kafka_login"),
            "topic": (self.spec(topic="no-such-topic"), "unknown_topic"),
        }

    def stop(self) -> None:
        self.broker.kill()

    def start(self) -> None:
        self.broker.start()


class TestKafkaSink(SinkSuite):
    @pytest.fixture
    def system(self, broker: Kafka) -> KafkaTarget:
        return KafkaTarget(broker)


class Directory(SourceSystem):
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {
            "type": "file", "path": str(self.root), "format": "json", "schema": COLUMNS, "poll_ms": 100,
            **fields,
        }  # fmt: skip

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        half = self.root / f".{uuid.uuid4().hex}.json"
        half.write_text("".join(json.dumps(event) + "\n" for event in events))
        half.rename(self.root / half.name[1:])


class StoredFiles(Directory):
    """A directory in an object store, which can be stopped."""

    outage_s = 60.0

    def __init__(self, store: S3) -> None:
        self.store, bucket = store, store.bucket()
        super().__init__(store.path(bucket) / "in")
        self.url = f"s3a://{bucket}/in"
        self.files = fs.S3FileSystem(
            access_key=S3_USER, secret_key=S3_PASSWORD, endpoint_override=store.url, region=REGION
        )

    def spec(self, **fields: Any) -> dict[str, Any]:
        return super().spec(**{"path": self.url, "store": self.store.access, **fields})

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        name = f"{self.url.removeprefix('s3a://')}/{uuid.uuid4().hex}.json"
        with self.files.open_output_stream(name) as out:
            out.write("".join(json.dumps(event) + "\n" for event in events).encode())

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return wrong_stores(self, self.store)

    def stop(self) -> None:
        self.store.kill()

    def start(self) -> None:
        self.store.start()


def wrong_stores(system: SourceSystem | SinkSystem, store: S3) -> dict[str, tuple[dict[str, Any], str]]:
    """Connectors whose object store does not let them in."""
    return {
        "login": (system.spec(store={**store.access, "secret_key": S3_PASSWORD[:-1]}), "store_login"),
        "bucket": (system.spec(path="s3a://no-such-bucket/in"), "bucket_not_found"),
        "address": (
            system.spec(store={**store.access, "endpoint": "http://127.0.0.1:9"}),
            "store_unreachable",
        ),
    }


PLACES = ["directory", "object store"] if NIGHTLY else ["directory"]


class TestFileSource(SourceSuite):
    @pytest.fixture(params=PLACES)
    def system(self, request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
        if request.param == "directory":
            return Directory(tmp_path / "in")
        return StoredFiles(request.getfixturevalue("object_store"))


class Output(SinkSystem):
    keyed = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "file", "path": str(self.root), "format": "json", **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return list(files(self.root))


class StoredOutput(Output):
    """A directory in an object store, which can be stopped."""

    outage_s = 60.0

    def __init__(self, store: S3) -> None:
        self.store, bucket = store, store.bucket()
        super().__init__(store.path(bucket) / "files")
        self.url = f"s3a://{bucket}/files"

    def spec(self, **fields: Any) -> dict[str, Any]:
        return super().spec(**{"path": self.url, "store": self.store.access, **fields})

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        partitioned = self.spec(partition_by=["name"])
        return {**wrong_stores(self, self.store), "partitions": (partitioned, "one_object")}

    def stop(self) -> None:
        self.store.kill()

    def start(self) -> None:
        self.store.start()


class TestFileSink(SinkSuite):
    @pytest.fixture(params=PLACES)
    def system(self, request: pytest.FixtureRequest, tmp_path: Path) -> Output:
        if request.param == "directory":
            return Output(tmp_path / "files")
        return StoredOutput(request.getfixturevalue("object_store"))


class Log(SourceSystem):
    killable = False
    keyed = True

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.streams["numbers"] = StreamSpec.model_validate({"schema": COLUMNS})

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "stream", "stream": "numbers", **fields}

    def put(self, events: Events, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        from penstock.frames.logs import LOGS
        from penstock.streams.events import HEADERS, KEY, META

        batch = pa.RecordBatch.from_pylist([dict(event) for event in events], _schema())
        if key is not None:
            rows = len(events)
            batch = batch.append_column(
                META.field(KEY), pa.array([key.encode()] * rows, META.field(KEY).type)
            )
            kinds = META.field(HEADERS)
            made = pa.array([list((headers or {}).items())] * rows, kinds.type)
            batch = batch.append_column(kinds, made)
        LOGS.log(self.bench.site.stream("numbers").directory).append(batch)

    def positions(self) -> Mapping[str, tuple[Any, int]]:
        return {"earliest": ("earliest", len(SOME)), "latest": ("latest", 0), "offset": ("offset:290", 10)}

    def wrong(self) -> Mapping[str, tuple[dict[str, Any], str]]:
        return {}


def _schema() -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("name", pa.string())])


class TestStreamSource(SourceSuite):
    @pytest.fixture
    def system(self, bench: Bench) -> Log:
        return Log(bench)


class Copy(SinkSystem):
    keyed = True

    def spec(self, **fields: Any) -> dict[str, Any]:
        return {"type": "stream", "stream": "copy", **fields}

    def received(self, bench: Bench) -> list[Mapping[str, Any]]:
        return [dict(event) for event in bench.stream("copy")]

    def bad(self) -> tuple[dict[str, str], str]:
        return {"name": "IF(seq % 2 = 0, NULL, 'x')"}, "null_value"


class TestStreamSink(SinkSuite):
    @pytest.fixture
    def system(self, bench: Bench) -> Copy:
        bench.streams["copy"] = StreamSpec.model_validate({"schema": "id BIGINT, name STRING NOT NULL"})
        return Copy()


def test_the_reference_claims_only_what_is_tested() -> None:
    """A connector that says with which system it was tested has a subclass of the suite in these tests."""
    text = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    for role in ("source", "sink"):
        tested = {name: cls.tested for name, cls in catalog(role).classes.items() if cls.tested}
        suites = re.findall(rf"^class Test(\w+){role.title()}\({role.title()}Suite\):", text, re.MULTILINE)
        assert {name.title().replace("_", "") for name in tested} == set(suites)
        assert tested["kafka"] == f"Apache Kafka {KAFKA}"
