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
"""The message for a record that does not fit for an unknown reason."""


class Source(Component):
    """A source of events: a streaming DataFrame, and the settings that Spark needs to run it."""

    position_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that define the meaning of an offset. A pipeline restarts from the beginning if one changes."""

    batch_fields: ClassVar[frozenset[str]] = frozenset()
    """The thresholds of `batch:` that this source supports."""

    guarantee: ClassVar[SourceGuarantee | None] = None
    """The delivery guarantee for events of the system, including crashes; None: not stated."""

    jars: ClassVar[str | None] = None
    """The set of `penstock.spark.jars` that it needs."""

    tested: ClassVar[str | None] = None
    """The system that the conformance suite of `penstock.testing` has run against, with its version."""

    push: ClassVar[bool] = False
    """Whether events are sent to it: a server accepts them, and no flow runs for a Source of this type."""

    held: ClassVar[bool] = False
    """Whether its events are stored in the flow's own input stream, from which the flow reads them."""

    paced: ClassVar[bool] = False
    """Whether its micro-batches can follow a latency goal."""

    piped: ClassVar[bool] = False
    """Whether it reads the standard input of its process, which only `penstock run` has."""

    @property
    def needed_jars(self) -> str | None:
        """The set of `penstock.spark.jars` that it needs with its settings."""
        return self.jars

    @classmethod
    def input_schema(cls, spec: Mapping[str, Any]) -> str | None:
        """The columns of the input stream as Spark DDL, from the raw spec; None: raw events."""
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
        """The code and the message for a record whose note has none; None if unknown."""
        return None

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        """Test the connection, within seconds, and list the available objects. Changes nothing."""
        return Probe(checked=False)

    def explained(self, text: str) -> PenstockError | None:
        """The error behind the text of an exception and its causes; None if there is no better explanation.

        `Invalid` if a retry cannot help. Paths are relative to the source.
        """
        return None

    def behind(self, progress: Mapping[str, Any]) -> int | None:
        """The number of waiting events in the external system, from Spark's progress; None: unknown."""
        return None

    def trigger(self, batch: Batch) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`. `availableNow` makes the pipeline finite."""
        return {"processingTime": "0 seconds"}


class Sink(Component):
    """A sink for events."""

    guarantee: ClassVar[Guarantee]
    """The effect of a batch that is delivered again, after a crash or a failure of another sink."""

    jars: ClassVar[str | None] = None
    """The set of `penstock.spark.jars` that it needs."""

    tested: ClassVar[str | None] = None
    """The system that the conformance suite of `penstock.testing` has run against, with its version."""

    meta: ClassVar[bool] = False
    """Whether its frames have the hidden column `$event` after the visible ones."""

    takes: ClassVar[Takes] = "frame"
    """The form of `Events` that its writer reads. A flow's only sink gets its events computed that way."""

    by_row: ClassVar[bool] = True
    """Whether `shape` works row by row, so that a streaming query can do it."""

    piped: ClassVar[bool] = False
    """Whether it writes to the standard output of its process, which only `penstock run` has."""

    @property
    def needed_jars(self) -> str | None:
        """The set of `penstock.spark.jars` that it needs with its settings."""
        return self.jars

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        """The columns of a frame in the form that the sink accepts. Plans only, runs nothing."""
        return df

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        """The problems of this sink with events of `schema`; paths are relative to the sink."""
        yield from ()

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        """Test the connection, within seconds, and list the available objects. Changes nothing."""
        return Probe(checked=False)

    def task_writer(self, spark: SparkSession, columns: pa.Schema, site: Site) -> Any:
        """A Java function that writes the events of a partition in its task; None: there is none.

        It is used if the sink is the only one of a flow and accepts a table. The written events must not be
        visible before the writer of the sink gets the results of the function, as `Events.written`.
        """
        return None

    def written_events(self, answer: bytes) -> int:
        """The number of events in a result of `task_writer`."""
        raise TypeError(f"the sink '{type(self).__name__}' has no writer for tasks")

    @abstractmethod
    def open(self, site: Site) -> SinkWriter:
        """A writer for one run of a pipeline."""


@dataclass(frozen=True)
class DeliveryId:
    """The permanent name of a batch: the same id means the same events, even after a crash.

    `lineage` identifies the checkpoint: a pipeline that restarts from the beginning numbers its batches from
    zero again, under another lineage.
    """

    pipeline: str
    sink: str
    lineage: str
    batch: int


@dataclass(frozen=True)
class Rejected:
    """An event that a sink rejects, while the rest of its batch was delivered."""

    row: str
    """The event as a JSON object."""
    code: str
    message: str
    event: Mapping[str, Any] | None = None
    """The hidden column `$event`, if the sink gets it."""


@dataclass(frozen=True)
class Delivered:
    """A batch that a sink has acknowledged: the number of delivered events, and the rejected events."""

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
        """The results of the sink's writer in the tasks, if it has already written the events."""
        return None


class SinkWriter(ABC):
    """Delivers batches. Used by one thread at a time, except for `cancel` and `waiting`."""

    waiting: bool = False
    """Whether `write` waits for a sink that is available but has no room, which is not a failure."""

    permitted: Callable[[], None] = staticmethod(lambda: None)
    """Raises if this process must not write any more (invariant 6). Call it right before a batch becomes
    visible, if that is a separate step."""

    @abstractmethod
    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        """Deliver a batch; returning acknowledges it.

        Raises `Retryable`, `Fatal` or `Backpressure`; any other error counts as retryable, unless Spark
        itself reports that it would recur.
        """

    def cancel(self) -> None:  # noqa: B027 (most never wait)
        """Cancel: a `write` that waits for an external system raises, and so does every later one."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release the resources of the writer."""


def write_counted(df: DataFrame, write: Callable[[DataFrame], None]) -> Delivered:
    """Run the single action `write` on `df`, and count the events that pass through it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    write(df.observe(observation, f.count(f.lit(1)).alias("events")))
    return Delivered(int(observation.get["events"]))
