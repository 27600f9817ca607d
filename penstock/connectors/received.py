"""The base of sources that fetch events with their own client, such as sources for databases and queues.

Penstock runs the client beside the query of the flow, appends its events to the flow's own input stream, and
Spark reads that stream. The client's position in the external system is stored with the events in one
append, so after a crash the client resumes right after the last stored event (invariant 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.base import Source
from penstock.frames.logs import place_of
from penstock.frames.site import Site
from penstock.frames.streams.read import columns_of, oldest_in, read_stream, reread_stream, stream_position
from penstock.specs.policies import Batch
from penstock.streams.home import StreamPlace

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Marks = Sequence[tuple[int, int, str, bool]]
"""Transactions of the external system: first event and next event by number, id, whether it ends there."""


class Ended(Exception):
    """The external system has no more events and never will."""


@dataclass(frozen=True)
class Received:
    """Events of the external system, in the columns of the input stream, `_key` and `_headers` included."""

    events: pa.RecordBatch
    position: str | None = None
    """The position after the events in the external system; None if a client can't resume from positions."""
    tx: Marks = ()
    handle: Any = None
    """Any data that `acknowledge` needs."""


class Receiver(ABC):
    """A client of the external system. Used by one thread, except for `stop`."""

    warn: Callable[[str], None] = staticmethod(lambda message: None)
    """Writes a warning to the log of the flow; set before `open`."""

    @abstractmethod
    def open(self, position: str | None) -> None:
        """Connect, and resume after the position of the last stored events; None: none are stored yet.

        Raises `Invalid` if a retry cannot help, and `Unavailable` or `Retryable` if it can. Paths of problems
        are relative to the source.
        """

    @abstractmethod
    def receive(self, wait_s: float) -> Received | None:
        """The next events; None if there are none within `wait_s` seconds.

        Raises `Ended` after the last event, and otherwise the errors of `open`.
        """

    def acknowledge(self, received: Received) -> None:  # noqa: B027 (a position needs none)
        """Acknowledge to the external system that these events have been stored."""

    def lag(self) -> int | None:
        """The backlog in the external system, in events; None if unknown. Must return within milliseconds."""
        return None

    def stop(self) -> None:  # noqa: B027 (most wait for `wait_s` seconds at most)
        """Make a `receive` that is waiting return soon. Called by another thread."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Disconnect. Also called after a failure of `open`."""


class ReceivedSource(Source):
    """A source whose events a `Receiver` appends to the input stream of the flow."""

    held: ClassVar = True
    paced: ClassVar = True
    batch_fields: ClassVar = frozenset(Batch.model_fields)

    @abstractmethod
    def receiver(self, site: Site) -> Receiver:
        """A new client. Connects in `open`, not here."""

    def position_of(self, site: Site) -> dict[str, Any]:
        return stream_position(self.reads(site))

    def reads(self, site: Site) -> StreamPlace:
        place = place_of(site, site.input, field="type")
        schema = self.input_schema(self.model_dump(by_alias=True))  # more precise once it is inferred
        return replace(place, spec=place.spec.model_copy(update={"schema_": schema}))

    def columns(self, spark: SparkSession, site: Site) -> StructType:
        return columns_of(spark, self.reads(site))

    def read(self, spark: SparkSession, batch: Batch, site: Site) -> DataFrame:
        return read_stream(spark, batch, site, self.reads(site), "earliest", "skip", metadata=False)

    def reread(self, spark: SparkSession, site: Site, first: int, end: int) -> DataFrame:
        return reread_stream(spark, self.reads(site), first, end, metadata=False)

    def oldest(self, site: Site) -> int | None:
        return oldest_in(self.reads(site))
