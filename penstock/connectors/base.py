"""The base classes of sources and sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from penstock.connectors.probe import Probe
from penstock.errors import PenstockError, Problem
from penstock.frames.site import Site
from penstock.specs.base import Component
from penstock.specs.policies import Batch
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Guarantee = Literal["exactly-once", "at-least-once"]

SourceGuarantee = Literal["exactly-once", "at-least-once", "at-most-once"]

Takes = Literal["frame", "table"]
"""A Spark frame, or an Arrow table in the driver."""

UNFIT = "the record doesn't match the schema"
"""The message for a record that doesn't match the schema for an unknown reason."""


class Source(Component):
    """A source of events: a streaming DataFrame, and the settings that Spark needs to run it."""

    position_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that define the meaning of an offset. A pipeline restarts from the beginning if one changes."""

    batch_fields: ClassVar[frozenset[str]] = frozenset()
    """The thresholds of `batch:` that this source honors."""

    guarantee: ClassVar[SourceGuarantee | None] = None
    """How often an event of the system enters the flow, crashes included; None: not declared."""

    jars: ClassVar[str | None] = None
    """The set of `penstock.spark.jars` that the connector needs."""

    tested: ClassVar[str | None] = None
    """The system that the conformance suite of `penstock.testing` has run against, with its version."""

    push: ClassVar[bool] = False
    """Whether clients push events to a server for it; no flow runs for a Source of this type."""

    held: ClassVar[bool] = False
    """Whether its events are stored in the flow's own input stream, from which the flow reads them."""

    paced: ClassVar[bool] = False
    """Whether its micro-batches can follow a latency goal."""

    piped: ClassVar[bool] = False
    """Whether it reads the standard input of its process, which only `penstock run` has."""

    @property
    def needed_jars(self) -> str | None:
        """The set of `penstock.spark.jars` that the connector needs with its settings."""
        return self.jars

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str | None:
        """The columns of the input stream as Spark DDL, from the spec as written; None: raw events."""
        return None

    def position_of(self, site: Site) -> dict[str, Any]:
        """The settings that define the meaning of an offset."""
        return {name: getattr(self, name) for name in self.position_fields}

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        """This source with inferred settings made explicit, such as a schema.

        Raises `Invalid`, with paths relative to the source, if they can't be inferred.
        """
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType | None:
        """The columns of its events, if they are known without access to an external system; else None."""
        from pyspark.sql.types import StructType

        from penstock.frames.hidden import visible

        found = self.read(spark, Batch(), site).schema
        return StructType([found[name] for name in visible(found.names)])

    @abstractmethod
    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        """The streaming frame of events, with `$event` as its last column if the source provides metadata.

        `$event` is created by `penstock.frames.known.event_of`. Plans only, runs nothing.
        """

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame | None:
        """The events from offset `first` to before `end` as a batch frame; None if they are not retained."""
        return None

    def reads(self, site: Site) -> StreamPlace | None:
        """The stream that the source reads, and in which its flow has a cursor; None if it reads none."""
        return None

    def oldest(self, site: Site) -> int | None:
        """The first offset that can be read again; None if events may be removed once they were read."""
        return None

    def reason(self, row: str) -> tuple[str, str] | None:
        """The error code and message of a record that was noted without them; None if there are none."""
        return None

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        """Test the connection within seconds, and collect names and sample events. Changes nothing."""
        return Probe(checked=False)

    def explained(self, text: str) -> PenstockError | None:
        """A specific error for the text of an exception and its causes; None if the source knows none.

        `Invalid` if a retry cannot help. Paths are relative to the source.
        """
        return None

    def behind(self, progress: Mapping[str, Any]) -> int | None:
        """The backlog in the external system, in events, from Spark's progress report; None: unknown."""
        return None

    def trigger(self, batch: Batch) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`. `availableNow` makes the pipeline finite."""
        return {"processingTime": "0 seconds"}


class Sink(Component):
    """A sink for events."""

    guarantee: ClassVar[Guarantee]
    """The effect of a batch that is delivered again, after a crash or a failure of another sink."""

    jars: ClassVar[str | None] = None
    """The set of `penstock.spark.jars` that the connector needs."""

    tested: ClassVar[str | None] = None
    """The system that the conformance suite of `penstock.testing` has run against, with its version."""

    meta: ClassVar[bool] = False
    """Whether its frames have the hidden column `$event` after the visible ones."""

    takes: ClassVar[Takes] = "frame"
    """The form of `Events` that its writer reads. Events for a flow's only sink are computed in this form."""

    by_row: ClassVar[bool] = True
    """Whether `shape` works row by row, so that a streaming query can apply it."""

    piped: ClassVar[bool] = False
    """Whether it writes to the standard output of its process, which only `penstock run` has."""

    @property
    def needed_jars(self) -> str | None:
        """The set of `penstock.spark.jars` that the connector needs with its settings."""
        return self.jars

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        """The columns of a frame in the form that the sink accepts. Plans only, runs nothing."""
        return df

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        """The problems of this sink with events of `schema`; paths are relative to the sink."""
        yield from ()

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        """Test the connection within seconds, and collect names and sample events. Changes nothing."""
        return Probe(checked=False)

    def task_writer(self, spark: SparkSession, columns: pa.Schema, site: Site) -> Any:
        """A Java function that writes the events of a partition within its task; None if the sink has none.

        Used if the sink is a flow's only sink and reads a table. The events it writes must stay invisible
        until the sink's writer has received the function's answers through `Events.written`.
        """
        return None

    def written_events(self, answer: bytes) -> int:
        """The number of events that an answer of the `task_writer` reports."""
        raise TypeError(f"the sink '{type(self).__name__}' has no writer for tasks")

    @abstractmethod
    def open(self, site: Site) -> SinkWriter:
        """A writer for one run of a pipeline."""


@dataclass(frozen=True)
class DeliveryId:
    """The permanent id of a batch: the same id means the same events, also after a crash.

    `lineage` identifies the checkpoint: a pipeline that restarts from the beginning numbers its batches from
    zero again, under another lineage.
    """

    pipeline: str
    sink: str
    lineage: str
    batch: int


@dataclass(frozen=True)
class Rejected:
    """An event that a sink rejected, while the rest of its batch was delivered."""

    row: str
    """The event as a JSON object."""
    code: str
    message: str
    event: Mapping[str, Any] | None = None
    """The hidden column `$event`, if the sink gets it."""


@dataclass(frozen=True)
class Delivered:
    """A batch that a sink has acknowledged: the number of accepted events, and the rejected events."""

    events: int
    rejected: Iterable[Rejected] = ()


class Events(ABC):
    """The events of a batch for one sink, in its shape. They are already computed: reading them is cheap."""

    @abstractmethod
    def frame(self) -> DataFrame:
        """The events as a Spark frame."""

    @abstractmethod
    def table(self) -> pa.Table:
        """The events as a table in this process."""

    def written(self) -> list[bytes] | None:
        """The answers of the sink's `task_writer`, if it has already written the events; else None."""
        return None


class SinkWriter(ABC):
    """Delivers batches. Used by one thread at a time, except for `cancel` and `waiting`."""

    waiting: bool = False
    """Whether `write` is waiting for a sink that is up but full, which is not a failure."""

    permitted: Callable[[], None] = staticmethod(lambda: None)
    """Raises if this process is no longer allowed to write (invariant 6). Call it right before a batch
    becomes visible, if that is a separate step."""

    @abstractmethod
    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        """Deliver a batch; returning acknowledges it.

        Raises `Retryable`, `Fatal` or `Backpressure`; anything else counts as retryable, unless Spark itself
        reports that it would fail again.
        """

    def cancel(self) -> None:  # noqa: B027 (most never wait)
        """Make a `write` that is waiting for an external system raise, and every later `write` too."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release the resources of the writer."""


def write_counted(df: DataFrame, write: Callable[[DataFrame], None]) -> Delivered:
    """Run the single action `write` on `df`, and count the events that pass through it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    write(df.observe(observation, f.count(f.lit(1)).alias("events")))
    return Delivered(int(observation.get["events"]))
