"""The `drop` sink: counts events and lets them go."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from penstock.connectors.base import Delivered, DeliveryId, Sink, SinkWriter, Site, write_counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DropSink(Sink):
    """Computes every event, counts it and discards it: for load tests and for trying a pipeline out.

    Delivery is at-least-once: a batch that is repeated is counted again.
    """

    type: Literal["drop"] = "drop"

    guarantee: ClassVar = "at-least-once"
    example: ClassVar = "type: drop\n"

    def open(self, site: Site) -> SinkWriter:
        return _Writer()


class _Writer(SinkWriter):
    def write(self, df: DataFrame, delivery: DeliveryId) -> Delivered:
        return write_counted(df, lambda counted: counted.write.format("noop").mode("overwrite").save())
