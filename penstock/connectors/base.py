"""The base classes of sources and sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from penstock.errors import Problem
from penstock.specs.base import Component
from penstock.specs.policies import Batch
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Guarantee = Literal["exactly-once", "at-least-once"]


@dataclass(frozen=True)
class Site:
    """What a component may know of the place where its flow runs."""

    flow: str
    """Names the flow for good, as a reader and a producer of streams: `pipeline:orders:1a2b3c4d`."""

    epoch: int
    """Grows each time the flow is given to a worker, so that streams can tell an older one (invariant 6)."""

    stream: Callable[[str], StreamPlace]
    """Where a stream lies; raises `NotFound` if there is none of that id."""

    input: str
    """Id of the stream that holds what is pushed to the flow."""

    dead: str = ""
    """Id of the stream for what the flow cannot process."""

    revision: int = 0
    """Of the document that runs."""

    state: Path | None = None
    """The directory where the flow keeps what Spark's checkpoint does not; None while it is only judged."""

    behind_bytes: int = 1024**3
    """How much may be kept for a sink that is behind, where its events cannot be read again."""

    allow_python: bool = False
    """Whether steps may run the user's own Python."""


class Source(Component):
    """Where events come from: a streaming DataFrame, and what Spark must know to run it."""

    position_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that decide what an offset means. A pipeline whose source changes one of them starts anew."""

    batch_fields: ClassVar[frozenset[str]] = frozenset()
    """The thresholds of `batch:` this source honours."""

    push: ClassVar[bool] = False
    """Whether events are sent to it: a server takes them in, and no flow runs for a Source of this type."""

    def position_of(self, site: Site) -> dict[str, Any]:
        """What decides the meaning of an offset."""
        return {name: getattr(self, name) for name in self.position_fields}

    def pinned(self, spark: SparkSession, site: Site) -> Self:
        """This source with all it would have to guess made explicit, such as an inferred schema.

        Raises `Invalid`, with paths relative to the source, if that cannot be found out.
        """
        return self

    def columns(self, spark: SparkSession, site: Site) -> StructType | None:
        """The columns of its events, if they can be told without a look outside; None if they cannot."""
        from pyspark.sql.types import StructType

        from penstock.processors.base import visible

        found = self.read(spark, Batch(), site).schema
        return StructType([found[name] for name in visible(found.names)])

    @abstractmethod
    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        """The stream of events, with `$event` as its last column if the source knows anything of them.

        `$event` is made by `penstock.processors.known.event_of`. Plans only, runs nothing.
        """

    def reread(self, spark: SparkSession, site: Site, first: int, next: int) -> DataFrame | None:
        """The events from an offset on, before another, as a frame that has an end; None if it cannot."""
        return None

    def reads(self, site: Site) -> StreamPlace | None:
        """The stream that it reads, where its flow keeps a cursor; None if it reads none."""
        return None

    def oldest(self, site: Site) -> int | None:
        """The first offset that can be read again; None if events may go as soon as they were read."""
        return None

    def reason(self, row: str) -> tuple[str, str] | None:
        """The code and the message of a record that was noted without one; None if there are none."""
        return None

    def trigger(self, batch: Batch) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`. `availableNow` makes the pipeline finite."""
        return {"processingTime": "0 seconds"}


class Sink(Component):
    """Where events go."""

    guarantee: ClassVar[Guarantee]
    """What a batch that is delivered again, after a crash or a failure elsewhere, does outside."""

    meta: ClassVar[bool] = False
    """Whether its frames have the hidden column `$event` after the visible ones."""

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        """What is wrong with this sink for events of `schema`; paths relative to the sink."""
        yield from ()

    @abstractmethod
    def open(self, site: Site) -> SinkWriter:
        """A writer for one run of a pipeline."""


@dataclass(frozen=True)
class DeliveryId:
    """Names a batch for good: the same id is the same events, also after a crash.

    `lineage` is the life of the checkpoint: a pipeline that starts anew counts its batches from zero
    again, under another lineage.
    """

    pipeline: str
    sink: str
    lineage: str
    batch: int


@dataclass(frozen=True)
class Rejected:
    """An event that a sink cannot take, while the rest of its batch was delivered."""

    row: str
    """The event as a JSON object."""
    code: str
    message: str
    event: Mapping[str, Any] | None = None
    """What its hidden column `$event` says, if the sink was given that."""


@dataclass(frozen=True)
class Delivered:
    """A batch that a sink has acknowledged: how many events it took, and those it did not."""

    events: int
    rejected: Sequence[Rejected] = ()


class SinkWriter(ABC):
    """Delivers batches. Used by one thread at a time, except for `cancel` and `waiting`."""

    waiting: bool = False
    """Whether `write` is held up by a sink that is there and has no room: that is no fault of it."""

    @abstractmethod
    def write(self, df: DataFrame, delivery: DeliveryId) -> Delivered:
        """Deliver a batch; to return is to acknowledge it.

        Raises `Retryable`, `Fatal` or `Backpressure`; anything else counts as retryable, unless Spark itself
        says that it would fail again.
        """

    def cancel(self) -> None:  # noqa: B027 (most never wait)
        """Give up: a `write` that waits for the other side raises, and so does every later one."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Let go of what the writer holds."""


def write_counted(df: DataFrame, write: Callable[[DataFrame], None]) -> Delivered:
    """Run the one action `write` on `df`, and count the events that pass through it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    write(df.observe(observation, f.count(f.lit(1)).alias("events")))
    return Delivered(int(observation.get["events"]))
