"""Shadow sinks: planned like the sinks of a flow, but they count events and write nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.connectors.base import Delivered, DeliveryId, Events, Sink, SinkWriter
from penstock.connectors.drop import DropSink
from penstock.engine.plan.flow import Part
from penstock.frames.site import Site


@dataclass
class BatchClock:
    """Divides the time of micro-batches into computing them and delivering them."""

    compute_s: list[float] = field(default_factory=list)
    deliver_s: list[float] = field(default_factory=list)
    _began: float = 0.0
    _computed: float | None = None

    def batch(self, begins: bool) -> None:
        """Record that a micro-batch begins, or was delivered with its letters."""
        now = time.perf_counter()
        if begins:
            self._began, self._computed = now, None
        elif self._computed is not None:
            self.compute_s.append(self._computed - self._began)
            self.deliver_s.append(now - self._computed)

    def computed(self) -> None:
        """Record that a sink has received the current micro-batch; only the first sink counts."""
        if self._computed is None:
            self._computed = time.perf_counter()


def shadowed(part: Part[Sink], clock: BatchClock) -> Part[Sink]:
    """A shadow of a flow's sink, with a writer that only counts events."""
    real = part.component

    def open_writer(self: Sink, site: Site) -> SinkWriter:
        return _Counting(clock, table=real.takes == "table")

    members: dict[str, Any] = {"open": open_writer, "__module__": __name__}
    if isinstance(real, DropSink):  # its own shape lets Spark prune all columns
        members |= {"shape": Sink.shape, "takes": "frame"}
    kind: Any = type(f"Shadow{type(real).__name__}", (type(real),), members)
    values = {name: getattr(real, name) for name in type(real).model_fields}
    return replace(part, component=kind.model_construct(**values))


class _Counting(SinkWriter):
    def __init__(self, clock: BatchClock, *, table: bool) -> None:
        self._clock, self._table = clock, table

    def write(self, events: Events, delivery: DeliveryId) -> Delivered:
        self._clock.computed()
        return Delivered(events.table().num_rows if self._table else events.frame().count())
