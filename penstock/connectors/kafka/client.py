"""The settings that the Kafka source and sink share: brokers, security, and further client settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from penstock.connectors.remote import ADDRESS
from penstock.specs.base import Component, Spec
from penstock.specs.reach import ClientOptions, FilePath, ServerAddress
from penstock.specs.tls import Tls as AnyTls
from penstock.streams.kafka.cluster import jaas

JARS = "kafka"

OWNED = re.compile(
    r"bootstrap\.servers|security\.protocol|sasl\..*|ssl\..*|auto\.offset\.reset|enable\.auto\.commit"
    r"|(key|value)\.(de)?serializer|interceptor\.classes|enable\.idempotence|acks|transactional\.id"
)
"""Settings of Kafka's client that other fields determine, or that delivery depends on."""

NAME = re.compile(r"[a-z][a-z0-9._]*")


class Sasl(Spec):
    """A user of the cluster."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(description="SASL mechanism.")
    username: str = Field(min_length=1, description="User name.")
    password: str = Field(description="Password; use `${NAME}` to read it from an environment variable.")


class KafkaTls(AnyTls):
    """Encrypted connections. Files are read on the worker that runs the flow."""

    ca_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file of trusted certificate authorities. Absent: those of Java.",
    )
    certificate_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file with the client's private key (PKCS #8) and certificates, if brokers require "
        "a client certificate.",
    )


class KafkaSecurity(Spec):
    """Encryption and authentication of connections. Absent: neither."""

    tls: KafkaTls | None = Field(default=None, description="Use TLS; `{}` uses the trust store of Java.")
    sasl: Sasl | None = Field(default=None, description="Authentication with a user name and a password.")

    def settings(self) -> dict[str, str]:
        """The settings of Kafka's client."""
        made = {"security.protocol": ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")}
        if (sasl := self.sasl) is not None:
            made["sasl.mechanism"] = sasl.mechanism
            made["sasl.jaas.config"] = jaas(sasl.mechanism, sasl.username, sasl.password)
        if (tls := self.tls) is not None:
            if tls.ca_file is not None:
                made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca_file}
            if tls.certificate_file is not None:
                made |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": tls.certificate_file}
            if tls.key_password is not None:
                made["ssl.key.password"] = tls.key_password
            if not tls.verify_hostname:
                made["ssl.endpoint.identification.algorithm"] = ""
        return made


class KafkaEnd(Component):
    """A connection to a Kafka cluster."""

    brokers: list[ServerAddress] = Field(
        min_length=1,
        description="Bootstrap servers as `host:port`. An entry may have several, separated by commas.",
    )
    security: KafkaSecurity | None = Field(default=None, description="TLS and authentication.")
    options: ClientOptions = Field(
        default_factory=dict,
        description="Additional Kafka client settings, such as `fetch.max.bytes`.",
    )

    @field_validator("brokers")
    @classmethod
    def _are_addresses(cls, value: list[str]) -> list[str]:
        for address in _split(value):
            if "${" not in address and not ADDRESS.fullmatch(address):
                raise ValueError(f"'{address}' is not a valid address: use host:port, such as localhost:9092")
        return value

    @field_validator("options")
    @classmethod
    def _are_free(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if OWNED.fullmatch(name):
                raise ValueError(
                    f"'{name}' can't be set here: it is determined by other fields of the connector"
                )
            if not NAME.fullmatch(name):
                raise ValueError(f"'{name}' is not a Kafka client setting")
        return value

    @property
    def addresses(self) -> list[str]:
        """The addresses of all brokers, one per entry."""
        return _split(self.brokers)

    def client(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """The settings of Kafka's client; the user may override `defaults`."""
        secured = self.security.settings() if self.security else {}
        return {**defaults, **self.options, **secured, "bootstrap.servers": ",".join(self.addresses)}

    def spark_options(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """The settings of Kafka's client as options of Spark's connector."""
        return {f"kafka.{name}": value for name, value in self.client(defaults).items()}


def _split(brokers: list[str]) -> list[str]:
    return [address.strip() for entry in brokers for address in entry.split(",") if address.strip()]
