"""The Kafka cluster that stores streams: its address and its security settings."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from penstock.errors import Problem, Unavailable
from penstock.settings import KafkaSettings

ANSWER_S = 10.0
"""Seconds after which a broker that does not respond counts as unreachable."""

NAME_LENGTH = 200

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster, from the settings `kafka`."""

    brokers: str
    prefix: str = "penstock."
    replication: int = -1
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_password: str | None = None
    verify_hostname: bool = True
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None

    @classmethod
    def of(cls, settings: KafkaSettings) -> Cluster | None:
        """The cluster of the settings; None if they name none."""
        if settings.brokers is None:
            return None
        tls, sasl = settings.tls, settings.sasl
        return cls(
            settings.brokers,
            settings.prefix,
            settings.replication or -1,
            tls.enabled,
            tls.ca_file,
            tls.certificate_file,
            tls.key_password,
            tls.verify_hostname,
            sasl.mechanism,
            sasl.username,
            sasl.password,
        )

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON; passwords are not resolved, so `${NAME}` stays a reference."""
        return asdict(self)

    @property
    def protocol(self) -> str:
        """Kafka's name for this combination of encryption and login."""
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.tls else "PLAINTEXT")

    def client(self) -> dict[str, Any]:
        """The settings of librdkafka."""
        made: dict[str, Any] = {
            "bootstrap.servers": self.brokers,
            "security.protocol": self.protocol,
            "log_level": 0,  # errors are raised where they matter
            "socket.timeout.ms": int(ANSWER_S * 1000),
            "socket.connection.setup.timeout.ms": 3000,
            "reconnect.backoff.max.ms": 1000,
        }
        if self.mechanism:
            made |= {"sasl.mechanism": self.mechanism, "sasl.username": self.username or ""}
            made["sasl.password"] = resolved(self.password or "")
        if self.tls:
            if self.ca_file:
                made["ssl.ca.location"] = self.ca_file
            if self.certificate_file:
                made |= {
                    "ssl.certificate.location": self.certificate_file,
                    "ssl.key.location": self.certificate_file,
                }
            if self.key_password:
                made["ssl.key.password"] = resolved(self.key_password)
            made["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
        return made

    def java_client(self) -> dict[str, str]:
        """The settings of Kafka's Java client."""
        made = {
            "bootstrap.servers": self.brokers,
            "security.protocol": self.protocol,
            "request.timeout.ms": "15000",
            "default.api.timeout.ms": "20000",
        }
        if self.mechanism:
            made["sasl.mechanism"] = self.mechanism
            made["sasl.jaas.config"] = jaas(
                self.mechanism, self.username or "", resolved(self.password or "")
            )
        if self.tls:
            if self.ca_file:
                made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
            if self.certificate_file:
                made |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.certificate_file}
            if self.key_password:
                made["ssl.key.password"] = resolved(self.key_password)
            if not self.verify_hostname:
                made["ssl.endpoint.identification.algorithm"] = ""
        return made


MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def jaas(mechanism: str, username: str, password: str) -> str:
    """The JAAS configuration of a login, for Kafka's Java client."""

    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    return f"{MODULES[mechanism]} required username={quoted(username)} password={quoted(password)};"


def resolved(text: str) -> str:
    """A text with each `${NAME}` replaced by the environment variable."""

    def value(found: re.Match[str]) -> str:
        if (known := os.environ.get(found[1])) is None:
            message = f"the variable '{found[1]}' is not set"
            raise Unavailable(
                Problem(code="unknown_variable", message=message, path="kafka", hint="set it, and restart")
            )
        return known

    return VARIABLE.sub(value, text)


def unreachable(cluster: Cluster, error: object) -> Unavailable:
    """The error for a cluster that does not respond."""
    return Unavailable(
        Problem(
            code="kafka_unreachable",
            message=f"Kafka at {cluster.brokers} is not responding: {error}",
            path="kafka.brokers",
            hint="check that the brokers are running, and the `kafka` settings",
        )
    )


def topic_of(cluster: Cluster, stream: str, life: str) -> str:
    """The topic of a stream: `<prefix><id>.<life>`; an id that Kafka does not accept gets a hash."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", stream)
    if name != stream or len(name) > NAME_LENGTH:
        name = f"{name[:NAME_LENGTH]}-{hashlib.sha256(stream.encode()).hexdigest()[:8]}"
    return f"{cluster.prefix}{name}.{life}"
