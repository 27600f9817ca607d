"""The base classes of processors: steps over rows, over Arrow batches, or over whole frames.

Every frame between the source and the sinks has one hidden column, `$event`, after the visible ones: the
metadata of an event. It is never NULL (`penstock.frames.known` creates it). A step that cannot process an
event adds a note to it in the hidden column `$note`; a row with a note is no longer an event, and the engine
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
    """The information about its flow that a step gets while it is planned, in the driver."""

    step: str
    site: Site
    batch: Batch
    sinks: tuple[str, ...] = ()
    """The ids of the flow's sinks."""
    finite: bool = False
    """Whether the source is finite."""
    testing: bool = False
    """Whether this is a test run: samples instead of a stream, and no external system may be called."""
    given: Any = None
    """In a test run: the responses of external systems, as given by the user."""
    delay_ms: int = 0
    """The delay of the flow's watermark after the latest event, in milliseconds."""


@dataclass(frozen=True)
class Desk:
    """The information about its task that a step gets."""

    step: str
    flow: str
    batch: int = 0
    partition: int = 0
    testing: bool = False
    given: Any = None
    policy: Policy = field(kw_only=True)
    """The policy for files and addresses that the step may access from the task."""


@dataclass(frozen=True)
class BadEvent:
    """An event that could not be processed: its row in the input batch, and the reason."""

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
    """A batch cannot be processed: the smallest part of it that is rejected goes to the dead letters."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


Work = Callable[["pa.RecordBatch"], Outcome]


class Processor(Component):
    """One transformation step. Three kinds derive from this class; the engine plans and runs them."""

    network: ClassVar[bool] = False
    """Whether it may call external systems. In a test run it only uses the `given` responses."""

    routes: ClassVar[bool] = False
    """Whether it may choose the sinks of an event, by their ids."""

    stateful: ClassVar[bool] = False
    """Whether it keeps state, in the checkpoint of the flow."""

    folds: ClassVar[bool] = False
    """Whether it aggregates its input into other events: fewer output events don't mean dropped ones."""

    def asks(self) -> bool:
        """Whether it calls external systems with its current settings."""
        return self.network

    def reads(self, site: Site) -> StreamPlace | None:
        """The stream that it reads in addition to its input, with its own cursor; None if there is none."""
        return None

    def state_of(self) -> dict[str, Any]:
        """The settings that define the meaning of the step's state: a change of them loses the state."""
        return {}

    def delay_ms(self) -> int:
        """The delay of the watermark after the latest event that this step needs, in milliseconds."""
        return 0

    def open_ms(self) -> int:
        """The maximum time after an event, in milliseconds, until its results are output."""
        return 0


class RowProcessor(Processor):
    """A step that processes one event at a time, in Spark's own expressions.

    It gets only the visible columns, and its plan must work row by row. The frame may be a stream, or empty
    while a document is being validated, or a few samples: the step must not depend on that. The engine
    carries `$event` through its plan, and an event on which its expressions fail becomes a fault.
    """

    @abstractmethod
    def apply(self, df: DataFrame) -> DataFrame:
        """The transformed frame. Raises `Invalid` for errors, with paths relative to this step."""


class BatchProcessor(Processor):
    """A Python step over Arrow batches, in Spark's Python workers.

    The engine passes it one batch of the flow after the other. If its work raises an exception, the engine
    searches for the smallest part of the batch that fails; a `penstock.frames.faults.Fault` fails the flow.
    """

    @abstractmethod
    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The visible output columns for the input `schema`. Raises `Invalid` for invalid settings."""

    @abstractmethod
    def open(self, desk: Desk) -> Work:
        """The function that processes batches, created once per task in a Python worker."""


class FrameProcessor(Processor):
    """A step over whole frames: it must keep `$event`, or create a new one, as the last column."""

    def sift(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events for `prepare`; with `$note` after `$event` for events that it must not get.

        For steps that move events between tasks: the data for a note is not moved along with other events.
        """
        return df

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events for `apply`; with `$note` after `$event` for events that it must not get.

        For steps whose output is not one row per event, so that `apply` could not add notes.
        """
        return df

    @abstractmethod
    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The transformed frame; with `$note` after `$event` if it adds notes."""
