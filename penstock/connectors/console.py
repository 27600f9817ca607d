"""The `console` sink: events on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(Sink):
    """Prints events as JSON lines: on the terminal with `penstock run`, else in the worker's log.

    Each batch is truncated after `max_rows` events, with a note on standard error: this is for inspection,
    not for storage. Delivery is at-least-once: a repeated batch is printed again.
    """

    type: Literal["console"] = "console"
    max_rows: int = Field(default=20, ge=1, description="Maximum number of events to print per batch.")

    guarantee: ClassVar = "at-least-once"
    takes: ClassVar = "table"
    example: ClassVar = "type: console\nmax_rows: 5\n"

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        from pyspark.sql import functions as f

        return df.select(f.to_json(f.struct("*")).alias("event"))

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self.max_rows)


class _Writer(SinkWriter):
    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        rows = events.table().column(0).to_pylist()
        if rows:
            print("\n".join(rows[: self.max_rows]), file=sys.stdout, flush=True)
        if len(rows) > self.max_rows:
            # Not on standard output, whose readers expect JSON.
            more = f"… batch {delivery.batch}: {len(rows) - self.max_rows} more events"
            print(more, file=sys.stderr, flush=True)
        return Delivered(len(rows))
