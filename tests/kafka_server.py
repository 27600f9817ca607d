"""A Kafka broker for tests: one JVM, KRaft, its jars by Maven into the cache of the environment."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.java import CACHE
from tests.servers import LEASH, free_port, unavailable

KAFKA = "4.3.1"
LOG4J = "2.25.3"
USER, PASSWORD = "penstock", 'sec"ret'
SCRAM_PASSWORD = "scrambled"
STORE_PASSWORD = "changeit"
NAMES = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")

POM = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>{LOG4J}</version></dependency>
  </dependencies>
</project>
"""


@dataclass
class Kafka:
    """A running broker."""

    home: Path
    port: int
    sasl_port: int
    tls_port: int
    jars: Path
    process: subprocess.Popen[bytes] | None = None
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where clients without a login connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def sasl_address(self) -> str:
        """Where clients log in."""
        return f"127.0.0.1:{self.sasl_port}"

    @property
    def tls_address(self) -> str:
        """Where clients connect by TLS, and log in by SCRAM."""
        return f"127.0.0.1:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        """The certificate that clients by TLS have to trust."""
        return self.home / "broker.pem"

    def topic(self, partitions: int = 1, name: str | None = None) -> str:
        """A new topic."""
        from confluent_kafka.admin import NewTopic

        name = name or f"t-{uuid.uuid4().hex[:12]}"
        made = self._admin().create_topics([NewTopic(name, partitions, 1)])
        made[name].result(30)
        return name

    def topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(self._admin().list_topics(timeout=10).topics)

    def send(
        self,
        topic: str,
        *values: Any,
        key: str | None = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int = -1,
        time_ms: int = 0,
    ) -> None:
        """Append records; what is neither bytes nor text is written as JSON."""
        from confluent_kafka import Producer

        producer = self._client("producer", Producer)
        for value in values:
            body = value if value is None or isinstance(value, bytes | str) else json.dumps(value)
            producer.produce(topic, body, key=key, headers=headers, partition=partition, timestamp=time_ms)
            producer.poll(0)
        assert producer.flush(30) == 0

    def records(self, topic: str, count: int, seconds: float = 30.0) -> list[Any]:
        """The first records of a topic, as the client has them; fewer if there are no more."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {
            "bootstrap.servers": self.address, "group.id": uuid.uuid4().hex, "enable.auto.commit": False,
            "log_level": 0,
        }  # fmt: skip
        consumer, found, until = Consumer(settings), [], time.monotonic() + seconds
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        while len(found) < count and time.monotonic() < until:
            found += [each for each in consumer.consume(count - len(found), 0.5) if each.error() is None]
        consumer.close()
        return found

    def size(self, topic: str) -> int:
        """How many records were written to a topic."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "size", "log_level": 0})
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), 10)[1] for each in partitions]
        consumer.close()
        return sum(ends)

    def delete_records(self, topic: str, before: int) -> None:
        """Remove the records of the first partition before an offset."""
        from confluent_kafka import TopicPartition

        for each in self._admin().delete_records([TopicPartition(topic, 0, before)]).values():
            each.result(30)

    def start(self) -> None:
        """Start the broker, or start it again with all that it had."""
        properties = str(self.home / "server.properties")
        classes = f"{self.home}:{self.jars}/*"
        command = [
            "java",
            "-Xmx512m",
            "-Xms128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classes,
        ]
        if not (self.home / "data" / "meta.properties").exists():
            tool = [*command, "kafka.tools.StorageTool"]
            user = f"SCRAM-SHA-512=[name={USER},password={SCRAM_PASSWORD}]"
            self._run([*tool, "format", "-t", _cluster(), "-c", properties, "--add-scram", user])
        with (self.home / "log").open("ab") as output:
            self.process = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    LEASH.replace("-INT", "-TERM"),
                    "sh",
                    self.home,
                    *command,
                    "kafka.Kafka",
                    properties,
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await()

    def kill(self) -> None:
        """Kill the broker as a crash would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"Kafka did not initialise: {done.stdout}{done.stderr}")

    def _await(self) -> None:
        from confluent_kafka import KafkaException

        assert self.process is not None
        until = time.monotonic() + 60
        while True:
            try:
                self._admin().list_topics(timeout=1)
                return
            except KafkaException:
                if self.process.poll() is not None or time.monotonic() > until:
                    unavailable(f"Kafka did not start: {(self.home / 'log').read_text()[-3000:]}")
                time.sleep(0.2)

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return self._client("admin", AdminClient)

    def _client(self, name: str, kind: Any) -> Any:
        if name not in self._clients:
            quiet = {"log_level": 0, "log.connection.close": False, "error_cb": lambda _: None}
            self._clients[name] = kind({"bootstrap.servers": self.address, **quiet})
        return self._clients[name]


def _cluster() -> str:
    """A cluster id as Kafka wants it: 16 bytes in base64."""
    return "MkU3OEVBNTcwNTJENDM2Qg"


def _jars() -> Path:
    """The jars of the broker, fetched once."""
    target = CACHE / f"kafka-broker-{KAFKA}"
    if (target / "done").exists():
        return target
    if not shutil.which("mvn"):
        unavailable("no Maven to fetch a Kafka broker with (Debian: sudo apt-get install -y maven)")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "pom.xml").write_text(POM)
        part = target.with_suffix(f".{os.getpid()}")
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"Maven could not fetch a Kafka broker: {done.stdout[-2000:]}")
        (part / "done").touch()
        if not target.exists():
            part.rename(target)
    return target


def _configure(kafka: Kafka) -> None:
    controller = free_port()
    (kafka.home / "log4j2.properties").write_text(
        "rootLogger.level = warn\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %d %p %m%n\n"
    )
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'{module} required user_{USER}="{_escaped(PASSWORD)}";'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    ports = zip(NAMES, (kafka.port, kafka.sasl_port, kafka.tls_port), strict=True)
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports]
    (kafka.home / "server.properties").write_text(
        f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={",".join(listeners)},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={",".join(listeners)}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map={",".join(f"{name}:{name}" for name in NAMES)},CONTROLLER:PLAINTEXT
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config={_property(login)}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.ssl.keystore.location={kafka.home / "broker.p12"}
listener.name.sasl_ssl.ssl.keystore.password={STORE_PASSWORD}
listener.name.sasl_ssl.ssl.key.password={STORE_PASSWORD}
log.dirs={kafka.home / "data"}
log.retention.ms=-1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
"""
    )


def _certify(home: Path) -> None:
    """A key of the broker, and its certificate for clients."""
    store = ["-keystore", str(home / "broker.p12"), "-storepass", STORE_PASSWORD, "-alias", "broker"]
    pair = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1"]
    for command in (
        [*pair, "-storetype", "PKCS12"],
        ["-exportcert", "-rfc", "-file", str(home / "broker.pem")],
    ):
        subprocess.run(["keytool", *command, *store], check=True, capture_output=True)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _property(text: str) -> str:
    """A value as it stands in a properties file."""
    return text.replace("\\", "\\\\")


@contextmanager
def kafka(port: int | None = None) -> Iterator[Kafka]:
    """A broker on loopback ports, for clients without a login on that one; stopped at the end."""
    jars = _jars()
    home = Path(tempfile.mkdtemp(prefix="penstock-kafka-"))
    made = Kafka(home, port or free_port(), free_port(), free_port(), jars)
    try:
        _certify(home)
        _configure(made)
        made.start()
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.communicate(timeout=60)
        shutil.rmtree(home, ignore_errors=True)
