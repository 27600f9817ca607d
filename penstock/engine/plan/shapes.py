"""Flows of the same shape: Spark plans the steps of one, and the others have the same columns.

A bundle may have thousands of pipelines that differ only in their names, streams and files. Planning takes
some hundred calls to Spark for each, while the columns after a step depend on few fields of a document.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.connectors.base import Source
from penstock.connectors.stream.source import StreamSource
from penstock.engine.plan.flow import Flow
from penstock.engine.plan.plan import plan_flow, require_fitting_sinks
from penstock.engine.plan.reach import out_of_reach
from penstock.errors import Invalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Planned:
    """The result of planning a flow."""

    source: Source
    """The source, with inferred settings made explicit."""
    columns: list[tuple[str, StructType]]
    """The visible columns after the source and after each step."""


@dataclass
class Shapes:
    """The flows that were planned in one session, by their shape. Invalid flows are not cached."""

    _known: dict[str, Planned] = field(default_factory=dict)

    def planned(self, flow: Flow, spark: SparkSession) -> Planned:
        """The plan of a flow, or of an earlier flow of the same shape; raises `Invalid` like `plan_flow`."""
        try:
            shape = shape_of(flow)
        except Invalid:  # it reads a stream that does not exist, which `plan_flow` reports with its path
            shape = None
        known = None if shape is None else self._known.get(shape)
        if known is None:
            plan = plan_flow(flow, spark)
            known = Planned(plan.flow.source.component, plan.columns)
            self._known |= {} if shape is None else {shape: known}
            return known
        if unseen := list(out_of_reach(flow, spark)):
            raise Invalid(*unseen)
        require_fitting_sinks(flow, known.columns[-1][1])
        return known


def shape_of(flow: Flow) -> str:
    """A key that is the same for flows with the same columns.

    It includes the settings of the stream, not its name, and only the ids and conditions of the sinks:
    whether a sink accepts the columns is cheap to check for each flow.
    """
    source = flow.source.component
    place = source.reads(flow.site)
    if isinstance(source, StreamSource):
        source = source.model_copy(update={"stream": ""})
    steps = [[part.id, part.component.model_dump_json()] for part in flow.processors]
    sinks = [[sink.id, sink.when] for sink in flow.sinks]
    reads = [source.model_dump_json(), place.spec.model_dump_json() if place else None]
    return json.dumps([reads, steps, sinks, flow.batch.model_dump_json()])
