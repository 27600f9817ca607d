"""The `drop` sink: counts events and discards them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DropSink(Sink):
    """Computes every event, counts it and discards it: for load tests and for trying out a pipeline.

    Delivery is at-least-once: a repeated batch is counted again.
    """

    type: Literal["drop"] = "drop"

    guarantee: ClassVar = "at-least-once"
    takes: ClassVar = "table"
    by_row: ClassVar = False
    example: ClassVar = "type: drop\n"

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        from pyspark.sql import functions as f

        return df.select(f.count(f.lit(1)).alias("events"))

    def open(self, site: Site) -> SinkWriter:
        return _Writer()


class _Writer(SinkWriter):
    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        return Delivered(int(events.table().column(0)[0].as_py()))
