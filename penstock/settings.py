"""Settings of a Penstock process, and where each of them came from.

Four layers, the later one wins: built-ins, `penstock.toml`, `PENSTOCK_*` variables, the command line.
What a setting means is said once, in its field's description; `catalogue()` lists them all.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from penstock.errors import Invalid, Problem, did_you_mean, nearest

FILE_NAME = "penstock.toml"
CONFIG_VARIABLE = "PENSTOCK_CONFIG"
PREFIX = "PENSTOCK_"
# Variables of the same prefix that belong to the test suite and to the command line client.
NOT_SETTINGS = frozenset(
    {
        CONFIG_VARIABLE,
        "PENSTOCK_TEST_STRICT",
        "PENSTOCK_TEST_NIGHTLY",
        "PENSTOCK_SERVER",
        "PENSTOCK_WORKER_TOKEN",
        "PENSTOCK_DEBUG",
        "PENSTOCK_FORK_SERVER",
    }
)

Keys = tuple[str, ...]
Layer = Literal["built-in", "file", "environment", "command line"]


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
        description="The most flows that the worker takes. Flows go to the worker with the fewest relative to"
        " its capacity. Unset: no limit, and 100 when loads are compared.",
    )
    bind: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address, or address:port, on which a worker answers the questions of the server. On any"
        " but loopback they are encrypted.",
    )
    advertise: str | None = Field(
        default=None,
        description="URL under which the server reaches a worker, if it differs from `bind`.",
    )
    certificate: Path | None = Field(
        default=None,
        description="PEM file with the certificate of a worker, the only one that the server trusts. Unset: a"
        " worker makes one with `openssl`.",
    )
    key: Path | None = Field(
        default=None,
        description="PEM file with the private key of `certificate`. Unset: that file has the key too.",
    )
    start_ms: int = Field(
        default=300_000,
        gt=0,
        description="How long a worker may take to start a flow, in milliseconds, besides the time in which"
        " the flow waits for its turn. Then another worker gets it; after three workers it has failed.",
    )
    drain_ms: int = Field(
        default=30_000,
        ge=0,
        description="How long a stopping worker waits for running batches to finish, in milliseconds.",
    )
    starts: int | None = Field(
        default=None,
        gt=0,
        description="How many flows a worker starts at a time; the others wait for their turn. Unset: half as"
        " many as the machine has cores, at least one.",
    )
    behind_bytes: int = Field(
        default=1024**3,
        ge=0,
        description="How much is kept for each sink that is behind, where its events cannot be read again"
        " from a stream, in bytes. What is beyond that is lost to the sink, and counted.",
    )

    @model_validator(mode="after")
    def _heartbeats(self) -> Self:
        if self.heartbeat_ms is not None and self.heartbeat_ms * 2 > self.lease_ms:
            raise ValueError(
                "heartbeat_ms must be at most half of lease_ms, or one late answer ends the lease"
            )
        return self


class TlsSettings(_Section):
    """Encryption of the server."""

    certificate: Path | None = Field(
        default=None, description="PEM file with the certificate of the server. Unset: it speaks plain HTTP."
    )
    key: Path | None = Field(
        default=None,
        description="PEM file with the private key of `certificate`. Unset: that file has the key too.",
    )


class StreamSettings(_Section):
    """How the logs of streams use this machine."""

    free_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=0,
        description="Appends are refused while the volume of the streams has less free space, in bytes.",
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
        default=None, min_length=1, description="PEM file of trusted authorities. Unset: those of the system."
    )
    certificate_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file with the client's private key and certificates, if brokers ask.",
    )
    key_password: str | None = Field(
        default=None, description="Password of the key; write `${NAME}` to take it from a variable."
    )
    verify_hostname: bool = Field(default=True, description="Whether a certificate must name its broker.")


class KafkaSaslSettings(_Section):
    """How Penstock logs in to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="How it logs in. Unset: it does not."
    )
    username: str | None = Field(default=None, min_length=1, description="Name of the user.")
    password: str | None = Field(
        default=None,
        description="Password of the user; write `${NAME}` to take it from a variable of each process.",
    )


class KafkaSettings(_Section):
    """The Kafka cluster that keeps the streams with `storage: kafka`."""

    brokers: str | None = Field(
        default=None,
        min_length=1,
        description="Brokers to begin with, as `host:port`, separated by commas. Unset: no stream can have"
        " `storage: kafka`.",
    )
    prefix: str = Field(
        default="penstock.",
        pattern=r"[A-Za-z0-9._-]{0,32}",
        description="What the names of topics begin with; installations that share a cluster need different"
        " ones.",
    )
    replication: int | None = Field(
        default=None, ge=1, description="Replicas of each topic. Unset: as many as the brokers' own default."
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


class LogSettings(_Section):
    """What the processes say about themselves."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="The least severe messages that are logged."
    )
    format: Annotated[Literal["text", "json"], BeforeValidator(_lower)] = Field(
        default="text", description="`text` for people, `json` for one object per line."
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
        description="Directory of all data. A relative path starts at the working directory, in"
        " `penstock.toml` at the directory of that file.",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="Address the server listens on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port the server listens on; 0 takes a free one."
    )
    workers: int = Field(default=1, ge=0, description="Workers that `penstock up` starts.")
    standby: int = Field(
        default=0,
        ge=0,
        description="Further workers that `penstock up` starts and that get flows only when another worker is"
        " gone: they have Spark running already.",
    )
    cache: Path | None = Field(
        default=None,
        description="Directory of files that can be made again, shared by all installations of a user."
        " Unset: `penstock` in `$XDG_CACHE_HOME` or in `~/.cache`.",
    )
    class_archive: bool = Field(
        default=True,
        description="Whether Java keeps Spark's classes in the cache directory (about 200 MB), so that Spark"
        " starts faster. Made once, in the background, when a worker is idle or a command has ended.",
    )
    allow_python: bool = Field(
        default=False,
        description="Whether `python` steps may run. Whoever may save a pipeline can then run any code on the"
        " workers.",
    )
    registry: RegistrySettings = Field(default_factory=RegistrySettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    tls: TlsSettings = Field(default_factory=TlsSettings)
    streams: StreamSettings = Field(default_factory=StreamSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    jars: JarSettings = Field(default_factory=JarSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    spark: dict[str, str] = Field(
        default={"spark.master": "local[*]"},
        description="Spark configuration of the workers, such as `master` or `sql.shuffle.partitions`."
        " A variable names a property in lower case, unless `penstock.toml` has it in another spelling.",
    )
    defaults: DefaultSettings = Field(default_factory=DefaultSettings)

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


@dataclass(frozen=True)
class Setting:
    """One thing that can be set, as the reference and `penstock config` show it."""

    path: str
    variable: str
    default: object
    choices: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Origin:
    """The effective value of a setting and the layer that decided it."""

    value: object
    layer: Layer
    name: str | None = None

    def __str__(self) -> str:
        if self.layer == "file":
            return f"{FILE_NAME} ({self.name})"
        return self.name or self.layer


@dataclass(frozen=True)
class Loaded:
    """Settings with their provenance and what looked wrong without being an error."""

    settings: Settings
    origins: dict[str, Origin]
    warnings: list[Problem] = field(default_factory=list)
    file: Path | None = None


def catalogue() -> list[Setting]:
    """Every setting there is, in the order of the model."""
    return list(_catalogue(Settings, ()))


def _catalogue(model: type[BaseModel], above: Keys) -> Iterator[Setting]:
    for name, info in model.model_fields.items():
        keys = (*above, name)
        if section := _section(info.annotation):
            yield from _catalogue(section, keys)
        else:
            variable = _variable(keys) + ("_*" if keys == ("spark",) else "")
            default = info.get_default(call_default_factory=True)
            choices = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
            yield Setting(".".join(keys), variable, default, choices, info.description or "")


def _section(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _variable(keys: Keys) -> str:
    return PREFIX + ".".join(keys).upper().replace(".", "_")


def load(
    overrides: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Loaded:
    """Settings from all layers.

    `overrides` are the command line's, by dotted name; those that are None were not given.
    Raises `Invalid` with every bad value and unknown name at once.
    """
    cwd = (cwd or Path.cwd()).absolute()
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    # A variable that is set to nothing counts as not set.
    variables = {n: v for n, v in (os.environ if env is None else env).items() if n.startswith(PREFIX) and v}

    layers = _Layers()
    layers.add(Settings().model_dump(), "built-in")
    file = _find_file(given, variables, cwd)
    if file:
        layers.add_file(file)
    layers.add_variables(variables)
    for name, value in given.items():
        layers.add(_nest(name, value), "command line")
    layers.resolve_home(cwd)
    settings = layers.validate()
    return Loaded(settings, layers.effective(settings), layers.warnings, file)


def _find_file(given: Mapping[str, object], variables: Mapping[str, str], cwd: Path) -> Path | None:
    if named := variables.get(CONFIG_VARIABLE):
        return cwd / Path(named).expanduser()
    home = given.get("home") or variables.get(_variable(("home",))) or Settings().home
    candidates = (cwd / FILE_NAME, cwd / Path(str(home)).expanduser() / FILE_NAME)
    return next((path for path in candidates if path.is_file()), None)


def _nest(name: str, value: object) -> dict[str, object]:
    """A table that holds `value` at a dotted name."""
    first, _, rest = name.partition(".")
    return {first: _nest(rest, value) if rest else value}


def _leaves(value: object, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    if isinstance(value, Mapping) and (value or not keys):
        for name, below in value.items():
            yield from _leaves(below, (*keys, str(name)))
    else:
        yield keys, value


def _spark_text(value: object) -> object:
    """A property as Spark spells it; what cannot be one is left for the model to refuse."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, list | dict) else str(value)


class _Layers:
    """The leaves of all layers so far with their origins; what is added later wins."""

    def __init__(self) -> None:
        self.origins: dict[Keys, Origin] = {}
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def add(self, table: Mapping[str, object], layer: Layer, name: str | None = None) -> None:
        for keys, value in _leaves(table):
            dotted = ".".join(keys)
            if dotted.startswith("spark."):
                # Inside [spark] both "sql.x" and the full "spark.sql.x" name the property spark.sql.x.
                keys = ("spark", "spark." + dotted.removeprefix("spark.").removeprefix("spark."))
                value = _spark_text(value)
            self._put(keys, Origin(value, layer, name))

    def _put(self, keys: Keys, origin: Origin) -> None:
        inside = [known for known in self.origins if known[: len(keys)] == keys]
        if inside and origin.value == {}:  # an empty table changes nothing
            return
        around = [keys[:length] for length in range(1, len(keys))]
        for replaced in (*inside, *around):
            self.origins.pop(replaced, None)
        self.origins[keys] = origin

    def add_file(self, file: Path) -> None:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            message = f"cannot read {file}: {error.strerror}"
            self.problems.append(Problem(code="unreadable_file", message=message))
        except ValueError as error:
            message = f"{file} is not valid TOML: {error}"
            self.problems.append(Problem(code="invalid_file", message=message))
        else:
            self.add(table, "file", str(file))

    def add_variables(self, variables: Mapping[str, str]) -> None:
        known = {setting.variable: setting for setting in catalogue()}
        properties = {_variable(keys[1:]): keys[-1] for keys in self.origins if keys[0] == "spark"}
        for variable, text in variables.items():
            value: object = text
            if variable.startswith(f"{PREFIX}SPARK_"):
                path = properties.get(variable) or variable.removeprefix(PREFIX).lower().replace("_", ".")
            elif variable in known:
                path = known[variable].path
                if isinstance(known[variable].default, dict):
                    value = self._table(path, variable, text)
            else:
                if variable not in NOT_SETTINGS:
                    self.warnings.append(_unknown_variable(variable, known))
                continue
            self.add(_nest(path, value), "environment", variable)

    def _table(self, path: str, variable: str, text: str) -> object:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        message, hint = "must be a JSON object", f"set by {variable}"
        self.problems.append(Problem(code="invalid_value", message=message, path=path, hint=hint))
        return {}

    def resolve_home(self, cwd: Path) -> None:
        """Make `home` absolute: it is passed to other processes."""
        origin = self.origins.get(("home",))
        if origin and isinstance(origin.value, str | Path):
            base = Path(origin.name).parent if origin.layer == "file" and origin.name else cwd
            home = base / Path(origin.value).expanduser()
            self.origins["home",] = replace(origin, value=home)

    def validate(self) -> Settings:
        table: dict[str, Any] = {}
        for keys, origin in self.origins.items():
            below = table
            for key in keys[:-1]:
                below = below.setdefault(key, {})
            below[keys[-1]] = origin.value
        try:
            settings = Settings.model_validate(table)
        except ValidationError as error:
            self.problems += [self._explain(details) for details in error.errors(include_url=False)]
        if self.problems:
            raise Invalid(*self.problems)
        return settings

    def _explain(self, details: ErrorDetails) -> Problem:
        keys = tuple(str(part) for part in details["loc"])
        path = keys[-1] if keys[0] == "spark" else ".".join(keys)
        origin = next(origin for known, origin in self.origins.items() if known[: len(keys)] == keys)
        if details["type"] == "extra_forbidden":
            hint = f"set by {origin}; {did_you_mean(keys[-1], _siblings(keys))}"
            return Problem(code="unknown_setting", message="there is no such setting", path=path, hint=hint)
        got = details["input"]
        shown = f", not {got!r}" if isinstance(got, str | int | float) else ""
        said = details["msg"].removeprefix("Value error, ")
        message = said.replace("Input should be", "must be", 1) + shown
        return Problem(code="invalid_value", message=message, path=path, hint=f"set by {origin}")

    def effective(self, settings: Settings) -> dict[str, Origin]:
        """Origins by dotted name, with values as the model understood them."""
        found: dict[str, Origin] = {}
        table = settings.model_dump()
        for keys, origin in sorted(self.origins.items()):
            value: Any = table
            for key in keys:
                value = value[key]
            found[keys[-1] if keys[0] == "spark" else ".".join(keys)] = replace(origin, value=value)
        return found


def _siblings(keys: Keys) -> list[str]:
    model: type[BaseModel] = Settings
    for key in keys[:-1]:
        model = _section(model.model_fields[key].annotation) or model
    return list(model.model_fields)


def _unknown_variable(variable: str, known: Iterable[str]) -> Problem:
    close = nearest(variable, [name.lower() for name in known])
    hint = f"did you mean '{close.upper()}'?" if close else None
    return Problem(code="unknown_variable", message="no setting has this name", path=variable, hint=hint)
