"""The settings of a Penstock process, and their descriptions."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from penstock.settings.guard import AuditSettings, AuthSettings, PolicySettings, SecretSettings, TlsSettings
from penstock.settings.section import Section, lowered, split_paths


class RegistrySettings(Section):
    """The storage of documents and their revisions."""

    url: str | None = Field(
        default=None,
        description="SQLAlchemy URL of the registry, SQLite or PostgreSQL. Unset: `registry.db` in `home`.",
    )


class WorkerSettings(Section):
    """Leases, capacity, and starting and stopping of flows on workers."""

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


class QuestionSettings(Section):
    """The process for questions, separate from flows: test runs, queries, validation, connection tests."""

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


class LimitSettings(Section):
    """Limits on clients of the server, so that no client prevents others from being served."""

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


class StreamSettings(Section):
    """Disk usage of the logs of streams."""

    free_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=0,
        description="Appends are rejected while the volume of the streams has less free space than this, in "
        "bytes.",
    )


class MonitorSettings(Section):
    """Monitoring of flows by the server."""

    stalled_ms: int = Field(
        default=120_000,
        gt=0,
        description="How long the backlog of a flow may grow while no batch finishes, in milliseconds. After "
        "that the flow is `stalled`.",
    )


class StorageSettings(Section):
    """The storage of state that running pipelines need after a restart."""

    url: str | None = Field(
        default=None,
        min_length=1,
        description="Checkpoints of pipelines and the state of their steps: a directory, or a URL that Spark"
        " can write, such as `hdfs://…` or `s3a://…`. Unset: `flows` in `home`.",
    )
    shared: Annotated[list[str], BeforeValidator(split_paths)] = Field(
        default_factory=list,
        description="Directories that all machines of a Spark cluster see under the same path, such as mounts"
        " of a network file system. In the variable, separated by `:`.",
    )


class KafkaTlsSettings(Section):
    """Encryption of connections to Kafka."""

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


class KafkaSaslSettings(Section):
    """Authentication of Penstock at Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="SASL mechanism. Unset: no authentication."
    )
    username: str | None = Field(default=None, min_length=1, description="User name.")
    password: str | None = Field(
        default=None,
        description="Password; use `${NAME}` to read it from an environment variable of each process.",
    )


class KafkaSettings(Section):
    """The Kafka cluster that stores the streams with `storage: kafka`."""

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


class JarSettings(Section):
    """The origin of connector jars that Spark does not include."""

    repository: str | None = Field(
        default=None,
        min_length=1,
        description="URL of a Maven repository, such as a mirror inside your network. Unset: Maven Central.",
    )


class LogSettings(Section):
    """The logs of Penstock's processes."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lowered)] = Field(
        default="info", description="Lowest severity that is logged."
    )
    format: Annotated[Literal["text", "json"], BeforeValidator(lowered)] = Field(
        default="text", description="`text`, or `json` for one JSON object per line."
    )


class DefaultSettings(Section):
    """Fields merged under the spec of every document of a kind."""

    stream: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Stream's spec.")
    source: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Source's spec.")
    task: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Task's spec.")
    sink: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Sink's spec.")
    pipeline: dict[str, Any] = Field(default_factory=dict, description="Defaults of every Pipeline's spec.")


class Settings(Section):
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
    monitor: MonitorSettings = Field(default_factory=MonitorSettings)
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
        """The URL of the registry: by default, the embedded registry in `home`."""
        return self.registry.url or f"sqlite:///{self.home / 'registry.db'}"

    @property
    def cache_directory(self) -> Path:
        """The directory of files that can be recreated."""
        shared = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return (self.cache or shared / "penstock").expanduser().absolute()

    @property
    def on_cluster(self) -> bool:
        """Whether Spark's tasks run in executors, which may be on other machines than the workers."""
        return not self.spark.get("spark.master", "local").startswith("local")

    @property
    def checkpoint_url(self) -> str:
        """The location of checkpoints."""
        return self.storage.url or str(self.home / "flows")
