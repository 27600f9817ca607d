"""The `console` sink: events on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.connectors.base import Delivered, DeliveryId, Sink, SinkWriter, Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(Sink):
    """Prints events as JSON lines: on the terminal with `penstock run`, else in the worker's log.

    Each batch is cut after `max_rows` events, which standard error tells: this is for looking, not for
    keeping. Delivery is at-least-once: a batch that is repeated is printed again.
    """

    type: Literal["console"] = "console"
    max_rows: int = Field(default=20, ge=1, description="Events printed of each batch.")

    guarantee: ClassVar = "at-least-once"
    example: ClassVar = "type: console\nmax_rows: 5\n"

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self.max_rows)


class _Writer(SinkWriter):
    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows

    def write(self, df: DataFrame, delivery: DeliveryId) -> Delivered:
        from pyspark.sql import functions as f

        rows = [row[0] for row in df.select(f.to_json(f.struct("*"))).collect()]
        if rows:
            print("\n".join(rows[: self.max_rows]), file=sys.stdout, flush=True)
        if len(rows) > self.max_rows:
            # Not on standard output: what reads that expects JSON.
            more = f"… batch {delivery.batch}: {len(rows) - self.max_rows} more events"
            print(more, file=sys.stderr, flush=True)
        return Delivered(len(rows))
