"""The settings of a Penstock process: what can be set, and what each setting means."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RegistrySettings(_Section):
    """Where documents and their revisions are kept."""

    url: str | None = Field(
        default=None,
        description="SQLAlchemy URL of the registry, SQLite or PostgreSQL. Unset: `registry.db` in `home`.",
    )


class WorkerSettings(_Section):
    """How workers hold on to flows and let go of them."""

    lease_ms: int = Field(
        default=10_000,
        gt=0,
        description="How long a worker may run a flow without renewing its lease, in milliseconds.",
    )
    heartbeat_ms: int | None = Field(
        default=None,
        gt=0,
        description="How often a worker renews its lease, in milliseconds; at most half of `lease_ms`. Unset:"
        " a fifth of `lease_ms`.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description='Labels of the worker, such as `zone = "a"`; a flow can require some with'
        " `placement.labels`.",
    )
    capacity: int | None = Field(
        default=None,
        gt=0,
        description="Maximum number of flows on the worker. A flow goes to the worker with the lowest load "
        "relative to its capacity. Unset: no limit; loads are compared as if it were 100.",
    )
    bind: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address, or address:port, on which a worker accepts requests from the server. "
        "Connections are encrypted unless the address is loopback.",
    )
    advertise: str | None = Field(
        default=None,
        description="URL under which the server reaches a worker, if it differs from `bind`.",
    )
    certificate: Path | None = Field(
        default=None,
        description="PEM file with the certificate of a worker, the only certificate that the server trusts "
        "for it. Unset: the worker creates one with `openssl`.",
    )
    key: Path | None = Field(
        default=None,
        description="PEM file with the private key of `certificate`. Unset: the key is in that file too.",
    )
    start_ms: int = Field(
        default=300_000,
        gt=0,
        description="How long a worker may take to start a flow, in milliseconds, not counting the time the "
        "flow waits for its turn. After that another worker gets the flow; after three workers the flow "
        "has failed.",
    )
    drain_ms: int = Field(
        default=30_000,
        ge=0,
        description="How long a stopping worker waits for running batches to finish, in milliseconds.",
    )
    stuck_ms: int = Field(
        default=20_000,
        ge=5_000,
        description="How long the JVM of a worker may give no answer, or do little but collect garbage, in"
        " milliseconds. Then the worker is killed and replaced.",
    )
    starts: int | None = Field(
        default=None,
        gt=0,
        description="Number of flows a worker starts at a time; the others wait for their turn. Unset: half "
        "the number of cores, at least one.",
    )
    behind_bytes: int = Field(
        default=1024**3,
        ge=0,
        description="How much is kept for each sink that is behind, if its events can't be read again from "
        "a stream, in bytes. Events beyond that are not delivered to the sink, and counted.",
    )

    @model_validator(mode="after")
    def _heartbeats(self) -> Self:
        if self.heartbeat_ms is not None and self.heartbeat_ms * 2 > self.lease_ms:
            raise ValueError(
                "heartbeat_ms must be at most half of lease_ms, or one late renewal ends the lease"
            )
        return self


class QuestionSettings(_Section):
    """The process that answers questions apart from the flows: test runs, queries, validation, checks."""

    process: bool = Field(
        default=True,
        description="Whether `penstock up` starts a process of its own for test runs, queries, validation and"
        " connection tests, when the first of them comes. Otherwise workers answer, beside their flows.",
    )
    deadline_ms: int = Field(
        default=60_000,
        gt=0,
        description="How long a test run, a validation or a connection test may take, in milliseconds; a"
        " query has its own timeout. If it can't be cancelled then, the process is killed and replaced.",
    )
    memory_mb: int = Field(
        default=2048,
        ge=1024,
        description="The most memory of the process with its JVM and Python processes, in MiB; half of it is"
        " the heap of the JVM. With more, the process is killed and replaced.",
    )
    idle_ms: int = Field(
        default=600_000,
        gt=0,
        description="The process ends after this many milliseconds without a question; the next one starts"
        " it again.",
    )


class TlsSettings(_Section):
    """Encryption of the server."""

    certificate: Path | None = Field(
        default=None,
        description="PEM file with the certificate of the server. Unset: the server uses plain HTTP.",
    )
    key: Path | None = Field(
        default=None,
        description="PEM file with the private key of `certificate`. Unset: the key is in that file too.",
    )


def _words(value: object) -> object:
    return [word for word in re.split(r"[,\s]+", value) if word] if isinstance(value, str) else value


class OidcSettings(_Section):
    """Log-in with an OpenID Connect provider."""

    issuer: str | None = Field(
        default=None,
        min_length=1,
        description="URL of the provider, below which `/.well-known/openid-configuration` is. Unset: users"
        " log in with passwords only.",
    )
    client_id: str | None = Field(
        default=None, min_length=1, description="Id under which the provider knows this installation."
    )
    client_secret: str | None = Field(
        default=None,
        description="Secret of the client; best set by its variable. Unset: a public client, with PKCE only.",
    )
    label: str = Field(default="Single sign-on", min_length=1, description="Text on the log-in button.")
    role_claim: str | None = Field(
        default=None,
        min_length=1,
        description="Claim of the ID token with the groups or roles of a user, such as `groups`; a dot leads"
        " into an object. Unset: every new user gets `default_role`, and an admin can change it.",
    )
    roles: dict[str, Literal["viewer", "operator", "editor", "admin"]] = Field(
        default_factory=dict,
        description="The role for each value of `role_claim`; of several, the one that includes most.",
    )
    default_role: Literal["viewer", "operator", "editor", "admin"] | None = Field(
        default=None,
        description="Role of users for whom `role_claim` says none. Unset: they cannot log in.",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.issuer is not None and self.client_id is None:
            raise ValueError("issuer needs a client_id")
        if self.roles and self.role_claim is None:
            raise ValueError("roles needs a role_claim")
        return self


class AuthSettings(_Section):
    """Who may use the server."""

    mode: Annotated[Literal["auto", "on"], BeforeValidator(_lower)] = Field(
        default="auto",
        description="`auto`: people have to log in as soon as there is a user or `auth.oidc.issuer` is set;"
        " until then the server is for this machine alone. `on`: always; without a user, `penstock up` prints"
        " a link for the first one.",
    )
    hosts: Annotated[list[str], BeforeValidator(_words)] = Field(
        default_factory=list,
        description="Names, or names with a port, under which browsers and programs reach the server, besides"
        " `host` and those of this machine. In the variable, separated by commas.",
    )
    proxies: Annotated[list[str], BeforeValidator(_words)] = Field(
        default_factory=list,
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto`"
        " are believed. In the variable, separated by commas.",
    )
    session_hours: float = Field(
        default=12, gt=0, description="Hours after which a session ends, however much it is used."
    )
    idle_minutes: float = Field(
        default=120, ge=2, description="Minutes without a request after which a session ends."
    )
    oidc: OidcSettings = Field(default_factory=OidcSettings)


class AuditSettings(_Section):
    """The audit trail."""

    retention_days: int = Field(
        default=365, ge=1, description="Days for which entries of the audit trail are kept."
    )


class LimitSettings(_Section):
    """What clients may ask of the server, so that none of them keeps the others from being served."""

    connections: int = Field(
        default=1_000,
        gt=0,
        description="Connections of clients at a time; at most a third of the file descriptors that the"
        " system grants. Further ones are answered 503.",
    )
    followers: int = Field(
        default=250,
        ge=0,
        description="Clients at a time that follow events, logs, streams or the overview. Further ones are"
        " answered 503.",
    )
    header_ms: int = Field(
        default=10_000,
        gt=0,
        description="How long a client may take to send the headers of a request, in milliseconds.",
    )
    body_ms: int = Field(
        default=30_000,
        gt=0,
        description="How long a client may pause while it sends the body of a request, in milliseconds.",
    )
    idle_ms: int = Field(
        default=5_000,
        gt=0,
        description="How long a connection stays open without a request, in milliseconds.",
    )
    send_ms: int = Field(
        default=30_000,
        gt=0,
        description="How long a client may leave an answer unread, in milliseconds. Then it is cut off.",
    )
    headers: int = Field(default=100, gt=0, description="Headers that a request may have.")
    header_bytes: int = Field(
        default=32 * 1024, ge=1024, description="Size of the headers and the URL of a request, in bytes."
    )
    body_bytes: int = Field(
        default=10 * 1024 * 1024,
        gt=0,
        description="Size of documents, bundles and test runs that are sent, in bytes. Sources of type `http`"
        " have `max_body_bytes` of their own.",
    )
    unsent_bytes: int = Field(
        default=256 * 1024 * 1024,
        gt=0,
        description="Bytes of answers that wait for clients to read them, in total. Beyond that, the clients"
        " that have read nothing for the longest time are cut off.",
    )


class StreamSettings(_Section):
    """How the logs of streams use this machine."""

    free_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=0,
        description="Appends are rejected while the volume of the streams has less free space than this, in "
        "bytes.",
    )


def _paths(value: object) -> object:
    return [path for path in value.split(os.pathsep) if path] if isinstance(value, str) else value


class StorageSettings(_Section):
    """Where running pipelines keep what they need after a restart."""

    url: str | None = Field(
        default=None,
        min_length=1,
        description="Checkpoints of pipelines and the state of their steps: a directory, or a URL that Spark"
        " can write, such as `hdfs://…` or `s3a://…`. Unset: `flows` in `home`.",
    )
    shared: Annotated[list[str], BeforeValidator(_paths)] = Field(
        default_factory=list,
        description="Directories that all machines of a Spark cluster see under the same path, such as mounts"
        " of a network file system. In the variable, separated by `:`.",
    )


class KafkaTlsSettings(_Section):
    """How connections to Kafka are encrypted."""

    enabled: bool = Field(default=False, description="Whether connections are encrypted.")
    ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file of trusted certificate authorities. Unset: those of the system.",
    )
    certificate_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file with the client's private key and certificates, if brokers require a client "
        "certificate.",
    )
    key_password: str | None = Field(
        default=None,
        description="Password of the key; use `${NAME}` to read it from an environment variable.",
    )
    verify_hostname: bool = Field(
        default=True, description="Whether a broker's certificate must match its host name."
    )


class KafkaSaslSettings(_Section):
    """How Penstock logs in to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="SASL mechanism. Unset: no authentication."
    )
    username: str | None = Field(default=None, min_length=1, description="User name.")
    password: str | None = Field(
        default=None,
        description="Password; use `${NAME}` to read it from an environment variable of each process.",
    )


class KafkaSettings(_Section):
    """The Kafka cluster that keeps the streams with `storage: kafka`."""

    brokers: str | None = Field(
        default=None,
        min_length=1,
        description="Bootstrap servers as `host:port`, separated by commas. Unset: no stream can have"
        " `storage: kafka`.",
    )
    prefix: str = Field(
        default="penstock.",
        pattern=r"[A-Za-z0-9._-]{0,32}",
        description="Prefix of topic names; installations that share a cluster need different prefixes.",
    )
    replication: int | None = Field(
        default=None, ge=1, description="Replication factor of topics. Unset: the default of the brokers."
    )
    tls: KafkaTlsSettings = Field(default_factory=KafkaTlsSettings)
    sasl: KafkaSaslSettings = Field(default_factory=KafkaSaslSettings)


class JarSettings(_Section):
    """Where the jars of connectors come from that Spark does not include."""

    repository: str | None = Field(
        default=None,
        min_length=1,
        description="URL of a Maven repository, such as a mirror inside your network. Unset: Maven Central.",
    )


SAFE_FORMATS = (
    "rate", "rate-micro-batch", "noop", "parquet", "orc", "json", "csv", "text", "avro", "delta", "iceberg",
)  # fmt: skip
"""Data sources of Spark that reach nothing but the paths in their options."""


class PolicySettings(_Section):
    """What documents may reach from the server and its workers."""

    paths: Annotated[list[str], BeforeValidator(_paths)] = Field(
        default_factory=list,
        description="Directories below which documents may name files, wherever links lead. Penstock's own"
        " files in `home` are never among them. In the variable, separated by `:`. Empty: `home`, the"
        " directory in which the process was started, and `storage.shared`.",
    )
    addresses: Annotated[list[str], BeforeValidator(_words)] = Field(
        default_factory=list,
        description="Addresses that documents may connect to although they are link-local or private:"
        " networks such as `10.0.0.0/8`, names such as `db.internal` or `*.internal`. In the variable,"
        " separated by commas.",
    )
    private_addresses: Annotated[Literal["auto", "allow", "refuse"], BeforeValidator(_lower)] = Field(
        default="auto",
        description="Whether documents may connect to loopback and private addresses. `auto`: if `host` is a"
        " loopback address, and neither `auth.mode` is `on` nor `auth.oidc.issuer` or `auth.proxies` is set."
        " Link-local addresses, where clouds have their metadata, need an entry in `addresses`.",
    )
    spark_formats: Annotated[list[str], BeforeValidator(_words)] = Field(
        default=list(SAFE_FORMATS),
        description="Data sources that the `spark` connector may use. In the variable, separated by commas.",
    )
    variables: Annotated[list[str], BeforeValidator(_words)] = Field(
        default_factory=list,
        description="Environment variables that documents may use as `${NAME}`, beside `PENSTOCK_HOME` and"
        " those that begin with `PENSTOCK_VAR_`. In the variable, separated by commas.",
    )


class SecretSettings(_Section):
    """Where values of secrets come from, and the key that encrypts those in the registry."""

    key: str | None = Field(
        default=None,
        min_length=1,
        description="Keys for secrets in the registry: 32 bytes in Base64 each, separated by commas; the"
        " first one encrypts. Best set by its variable. All servers and workers need the same. Unset:"
        " `key_file`.",
    )
    key_file: Path | None = Field(
        default=None,
        description="File with such keys, one in a line. Unset: `secrets.key` in `home`; a server with the"
        " embedded registry makes it.",
    )
    directories: Annotated[list[str], BeforeValidator(_paths)] = Field(
        default_factory=lambda: ["/run/secrets"],
        description="Directories below which a Secret may name a file. In the variable, separated by `:`.",
    )
    vault_url: str | None = Field(
        default=None, min_length=1, description="URL of a HashiCorp Vault or OpenBao server."
    )
    vault_token: str | None = Field(
        default=None, min_length=1, description="Token for that server; best set by its variable."
    )
    vault_token_file: Path | None = Field(
        default=None, description="File with the token, read each time; a Vault agent can renew it."
    )
    vault_namespace: str | None = Field(default=None, min_length=1, description="Namespace in that server.")
    vault_ca_file: Path | None = Field(
        default=None, description="PEM file of trusted certificate authorities. Unset: those of the system."
    )


class LogSettings(_Section):
    """What the processes say about themselves."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="Lowest severity that is logged."
    )
    format: Annotated[Literal["text", "json"], BeforeValidator(_lower)] = Field(
        default="text", description="`text`, or `json` for one JSON object per line."
    )


class DefaultSettings(_Section):
    """Fields merged under the spec of every document of a kind."""

    stream: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Stream's spec.")
    source: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Source's spec.")
    task: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Task's spec.")
    sink: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Sink's spec.")
    pipeline: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Pipeline's spec.")


class Settings(_Section):
    """The settings of a Penstock process."""

    home: Path = Field(
        default=Path(".penstock"),
        description="Data directory. A relative path is resolved against the working directory, or in "
        "`penstock.toml` against the directory of that file.",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="Address the server listens on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port the server listens on; 0 chooses a free port."
    )
    workers: int = Field(default=1, ge=0, description="Number of workers that `penstock up` starts.")
    standby: int = Field(
        default=0,
        ge=0,
        description="Number of additional workers that `penstock up` starts with Spark running, to take "
        "over the flows of a lost worker.",
    )
    cache: Path | None = Field(
        default=None,
        description="Directory of cached files, shared by all installations of a user."
        " Unset: `penstock` in `$XDG_CACHE_HOME` or in `~/.cache`.",
    )
    class_archive: bool = Field(
        default=True,
        description="Whether Java keeps Spark's classes in the cache directory (about 200 MB), so that Spark"
        " starts faster. The archive is made once, in the background, when a worker is idle or a command "
        "has ended.",
    )
    allow_python: bool = Field(
        default=False,
        description="Whether `python` steps may run. If so, anyone who can save a pipeline can run "
        "arbitrary code on the workers.",
    )
    registry: RegistrySettings = Field(default_factory=RegistrySettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    questions: QuestionSettings = Field(default_factory=QuestionSettings)
    tls: TlsSettings = Field(default_factory=TlsSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    streams: StreamSettings = Field(default_factory=StreamSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    jars: JarSettings = Field(default_factory=JarSettings)
    policy: PolicySettings = Field(default_factory=PolicySettings)
    secrets: SecretSettings = Field(default_factory=SecretSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    spark: dict[str, str] = Field(
        default={"spark.master": "local[*]"},
        description="Spark configuration of the workers, such as `master` or `sql.shuffle.partitions`."
        " An environment variable sets the property in lower case, unless `penstock.toml` spells it "
        "differently.",
    )
    defaults: DefaultSettings = Field(default_factory=DefaultSettings)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def registry_url(self) -> str:
        """The registry's URL, embedded in `home` unless one was set."""
        return self.registry.url or f"sqlite:///{self.home / 'registry.db'}"

    @property
    def cache_directory(self) -> Path:
        """Where files are kept that can be made again."""
        shared = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return (self.cache or shared / "penstock").expanduser().absolute()

    @property
    def on_cluster(self) -> bool:
        """Whether Spark's tasks run in executors, which may be on other machines than the workers."""
        return not self.spark.get("spark.master", "local").startswith("local")

    @property
    def checkpoint_url(self) -> str:
        """Where checkpoints are kept."""
        return self.storage.url or str(self.home / "flows")
