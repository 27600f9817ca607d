"""Base classes of processors: steps over rows, over Arrow batches, or over whole frames.

Every frame between the source and the sinks has one hidden column, `$event`, after the visible columns: the
metadata of an event. It is never NULL (`penstock.frames.known` creates it). A step that cannot process an
event records a note in the hidden column `$note`; a row with a note is no longer an event, and the engine
removes it right after the step.
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
    """Information about the flow, for a step that is being planned in the driver."""

    step: str
    site: Site
    batch: Batch
    sinks: tuple[str, ...] = ()
    """The ids of the flow's sinks."""
    finite: bool = False
    """Whether the source is finite."""
    testing: bool = False
    """Whether this is a test run: on samples instead of a stream, and without external systems."""
    given: Any = None
    """In a test run: the responses of external systems, as given by the user."""
    delay_ms: int = 0
    """Delay of the flow's watermark behind the latest event."""


@dataclass(frozen=True)
class Desk:
    """Information about the task, for a step that runs in a Python worker."""

    step: str
    flow: str
    batch: int = 0
    partition: int = 0
    testing: bool = False
    given: Any = None
    policy: Policy = field(kw_only=True)
    """The policy for the files and addresses that the step may access from the task."""


@dataclass(frozen=True)
class BadEvent:
    """An event that could not be processed: its row in the given batch, and the reason."""

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
    """A batch was rejected: the smallest part of it that is still rejected goes to the dead letters."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


Work = Callable[["pa.RecordBatch"], Outcome]


class Processor(Component):
    """One transformation step, the base class of three kinds. Plans and runs nothing on its own."""

    network: ClassVar[bool] = False
    """Whether the step may access external systems. In a test run it must only use the `given` responses."""

    routes: ClassVar[bool] = False
    """Whether the step may choose the sinks of an event, by their ids."""

    stateful: ClassVar[bool] = False
    """Whether the step keeps state, in the checkpoint of the flow."""

    folds: ClassVar[bool] = False
    """Whether the step combines events into new ones: fewer output events don't mean dropped events."""

    def asks(self) -> bool:
        """Whether the step accesses external systems, as configured."""
        return self.network

    def reads(self, site: Site) -> StreamPlace | None:
        """The stream that the step reads in addition to its input, with a cursor; None if it reads none."""
        return None

    def state_of(self) -> dict[str, Any]:
        """The settings that define the meaning of the step's state: changing them discards the state."""
        return {}

    def delay_ms(self) -> int:
        """The delay that this step requires between the watermark and the latest event, in milliseconds."""
        return 0

    def open_ms(self) -> int:
        """How long after an event the step may still hold back output for it, in milliseconds."""
        return 0


class RowProcessor(Processor):
    """A step that processes one event at a time, in Spark's own expressions.

    It gets the visible columns only, and its plan must work row by row. The frame may be a stream, a few
    samples, or empty while a document is being validated: the step must not depend on which of them it is.
    The engine carries `$event` through the plan, and notes a fault for an event whose expressions raise.
    """

    @abstractmethod
    def apply(self, df: DataFrame) -> DataFrame:
        """The transformed frame. Raises `Invalid` for errors, with paths relative to this step."""


class BatchProcessor(Processor):
    """A Python step over Arrow batches, in Spark's Python workers.

    The engine passes it one batch of the flow after the other. If its work raises an exception, the engine
    looks for the smallest part of the batch that fails; a `penstock.frames.faults.Fault` fails the flow.
    """

    @abstractmethod
    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The visible output columns for the input columns in `schema`. Raises `Invalid` for errors."""

    @abstractmethod
    def open(self, desk: Desk) -> Work:
        """The function over batches, created once per task in a Python worker."""


class FrameProcessor(Processor):
    """A step over whole frames: it gets `$event` and must keep or recreate it as the last column."""

    def sift(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events for `prepare`, with `$note` after `$event` for events that it must not get.

        For steps that shuffle events between tasks: the data for notes is not shuffled with the other events.
        """
        return df

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events for `apply`, with `$note` after `$event` for events that it must not get.

        For steps whose output is not one row for each event, so that `apply` cannot make notes.
        """
        return df

    @abstractmethod
    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The transformed frame, with `$note` after `$event` if it makes notes."""
