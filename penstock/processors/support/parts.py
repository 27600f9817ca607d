"""The parts of a batch for which a script is called: the events of a window stay together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames.hidden import EVENT
from penstock.processors.base import Outcome


@dataclass(frozen=True)
class Part:
    """The events of one call: a whole batch, or one window of it."""

    start: int
    """The first row of the part in the batch."""
    batch: pa.RecordBatch
    window: str | None


def parts(batch: pa.RecordBatch) -> Iterator[Part]:
    """The windows of a batch, or the batch itself if it has none."""
    windows = pc.struct_field(batch.column(EVENT), "batch")
    if windows.null_count == len(windows):
        if batch.num_rows:
            yield Part(0, batch, None)
        return
    start = 0
    for window, run in groupby(windows.to_pylist()):
        count = sum(1 for _ in run)
        yield Part(start, batch.slice(start, count), window)
        start += count


def merged(outcomes: Sequence[Outcome], schema: pa.Schema) -> Outcome:
    """The outcomes of all parts of a batch as one."""
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(
        one_batch(pa.Table.from_batches([each.batch for each in outcomes], schema)),
        [bad for each in outcomes for bad in each.bad],
        [line for each in outcomes for line in each.logs],
    )


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as a single batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
