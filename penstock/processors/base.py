"""What processors are: steps over rows, over Arrow batches, or over whole frames.

Every frame between the source and the sinks has one hidden column, `$event`, after the visible ones: what is
known of an event beside its columns. It is never NULL (`penstock.frames.known` makes it). A step that
cannot process an event makes a note of it in the hidden column `$note`; a row with a note is no event any
more, and the engine takes it out right after the step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.policy import Policy
from penstock.redaction import redacted
from penstock.specs.base import Component

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from penstock.frames.site import Site
    from penstock.specs.policies import Batch
    from penstock.streams.home import StreamPlace


@dataclass(frozen=True)
class Stage:
    """The facts about its flow that a step gets while it is planned, in the driver."""

    step: str
    site: Site
    batch: Batch
    sinks: tuple[str, ...] = ()
    """Ids of the flow's sinks."""
    finite: bool = False
    """The source has an end."""
    testing: bool = False
    """A test run: samples instead of a stream, and nothing outside may be touched."""
    given: Any = None
    """In a test run: what the user says the outside would answer."""
    delay_ms: int = 0
    """How far the watermark of the flow stays behind the latest event."""


@dataclass(frozen=True)
class Desk:
    """The facts about its task that a step gets."""

    step: str
    flow: str
    batch: int = 0
    partition: int = 0
    testing: bool = False
    given: Any = None
    policy: Policy = field(kw_only=True)
    """What the step may reach from the task."""


@dataclass(frozen=True)
class BadEvent:
    """An event that could not be processed: a row of the batch that was given, and why."""

    row: int
    code: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", redacted(self.message))


@dataclass(frozen=True)
class Outcome:
    """The output of a step for a batch: the visible columns, then `$event`."""

    batch: pa.RecordBatch
    bad: Sequence[BadEvent] = ()
    logs: Sequence[str] = ()


class Refused(Exception):
    """A batch cannot be processed: the smallest part of it that is refused goes to the dead letters."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


Work = Callable[["pa.RecordBatch"], Outcome]


class Processor(Component):
    """One transformation step. Three kinds derive from this; each plans and runs nothing by itself."""

    network: ClassVar[bool] = False
    """Whether it may reach outside. In a test run it must live on what was `given`."""

    routes: ClassVar[bool] = False
    """Whether it may choose the sinks of an event, by their ids."""

    stateful: ClassVar[bool] = False
    """Whether it remembers events, in the checkpoint of the flow."""

    folds: ClassVar[bool] = False
    """Whether it makes other events of those it gets: fewer that go out are none that were dropped."""

    def asks(self) -> bool:
        """Whether it reaches outside as it is declared."""
        return self.network

    def reads(self, site: Site) -> StreamPlace | None:
        """The stream that it reads beside its input, where it keeps a cursor; None if it reads none."""
        return None

    def state_of(self) -> dict[str, Any]:
        """The settings that define the meaning of the step's state: a change of them loses the state."""
        return {}

    def delay_ms(self) -> int:
        """How far the watermark has to stay behind the latest event for this step, in milliseconds."""
        return 0

    def open_ms(self) -> int:
        """How long after an event, in milliseconds, it may still wait to say something about it."""
        return 0


class RowProcessor(Processor):
    """A step that sees one event at a time, in Spark's own expressions.

    It is given the visible columns only, and what it plans must work row by row. The frame may be a stream,
    or empty while a document is being validated, or a handful of samples: it cannot tell and must not ask.
    The engine carries `$event` through its plan, and makes a fault of an event whose expressions raise.
    """

    @abstractmethod
    def apply(self, df: DataFrame) -> DataFrame:
        """The transformed frame. Raises `Invalid` for errors, with paths relative to this step."""


class BatchProcessor(Processor):
    """A step in Python over Arrow batches, in Spark's Python workers.

    The engine gives it one batch of the flow after the other. An exception of its work makes the engine look
    for the smallest part of the batch that fails; a `penstock.frames.faults.Fault` fails the flow.
    """

    @abstractmethod
    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The visible columns it makes of those in `schema`. Raises `Invalid` for what is wrong."""

    @abstractmethod
    def open(self, desk: Desk) -> Work:
        """The function over batches, made once per task in a Python worker."""


class FrameProcessor(Processor):
    """A step over whole frames: it sees `$event` and must keep it, or make a new one, as the last column."""

    def sift(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that `prepare` is to get; with `$note` after `$event` for those that it must not get.

        For steps that move events between tasks: what a note needs of an event is not moved with the others.
        """
        return df

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that `apply` is to get; with `$note` after `$event` for those that it must not get.

        For steps whose output is not one row for each event, so that notes could not be made there.
        """
        return df

    @abstractmethod
    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The transformed frame; with `$note` after `$event` where it makes notes."""
