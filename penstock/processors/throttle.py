"""The `throttle` step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PrivateAttr

from penstock.processors.base import BatchProcessor, Desk, Outcome, Stage, Work
from penstock.processors.support.rates import OwnBucket, bucket, bucket_file

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class ThrottleProcessor(BatchProcessor):
    """Limits the events per second, over all batches of the flow on one machine.

    With `mode: delay` events wait, and so does what is before them, up to the source. A batch goes on when
    its last event may: for a low rate, set `batch: {max_events: …}` to about what passes in a second. With
    `mode: drop` what is too much is left out and counted as dropped: which events these are depends on the
    clock and on the batches, so a test run, which is one batch, may keep others. A test run delays nothing.
    """

    example: ClassVar[str] = """\
type: throttle
rate: 500
"""

    type: Literal["throttle"] = "throttle"
    rate: float = Field(gt=0, description="Events per second.")
    mode: Literal["delay", "drop"] = Field(
        default="delay", description="Whether to delay or drop events above the rate."
    )
    burst: int | None = Field(
        default=None,
        ge=1,
        description="Burst size after a pause. Default: 1 with `delay`, one second of events with `drop`.",
    )

    _file: Path | None = PrivateAttr(default=None)

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The same columns."""
        self._file = bucket_file(stage.site.state, stage.step)
        return schema

    def open(self, desk: Desk) -> Work:
        """Waits, or leaves events out."""
        burst = self.burst or (1 if self.mode == "delay" else math.ceil(self.rate))
        limit = OwnBucket(self.rate, burst) if desk.testing else bucket(self._file, self.rate, burst)

        def delay(batch: pa.RecordBatch) -> Outcome:
            if not desk.testing:
                limit.wait(batch.num_rows)
            return Outcome(batch)

        def drop(batch: pa.RecordBatch) -> Outcome:
            return Outcome(batch.slice(0, limit.take(batch.num_rows)))

        return delay if self.mode == "delay" else drop
