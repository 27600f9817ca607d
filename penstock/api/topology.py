"""The whole registry as a graph."""

from typing import Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.graph.topology import EdgeKind, topology_of


class Node(View):
    """A document, or a source, sink or stream that is part of one."""

    key: str = Field(
        description="`Kind/id`; for an inline source or sink `Pipeline/id#source` or `…#sinks/id`."
    )
    kind: Literal["Source", "Stream", "Task", "Pipeline", "Sink"]
    id: str
    name: str
    type: str | None = Field(description="For a source or sink: the type of the connector.")
    status: str | None = Field(description="Null if the document doesn't run on its own.")
    inline: bool = Field(description="Whether the source or sink is configured inline in another document.")
    owner: str | None = Field(description="For an inline source or sink: the key of its document.")
    labels: dict[str, str] = Field(description="Labels of a document; empty for an inline source or sink.")


class Edge(View):
    """A path of events, or a document that defines a part of another."""

    model_config = ConfigDict(populate_by_name=True)

    key: str
    from_: str = Field(alias="from")
    to: str
    flow: str = Field(
        description="Flow whose rate the edge shows: the rate of its `sink`, otherwise its input rate. The "
        "key of a stream where no flow moves the events; empty if the stream has other producers too."
    )
    sink: str | None
    kind: EdgeKind


class Topology(View):
    """The graph. Edges connect only existing nodes."""

    nodes: list[Node]
    edges: list[Edge]


def topology_routes(service: Service) -> APIRouter:
    """The route for the graph of the registry."""
    router = APIRouter(tags=["overview"])

    @router.get("/topology", summary="Get the registry as a graph", operation_id="getTopology")
    def topology() -> Topology:
        found = topology_of(service)
        return Topology(
            nodes=[Node.model_validate(vars(node)) for node in found.nodes],
            edges=[
                Edge(
                    key=edge.key,
                    from_=edge.begin,
                    to=edge.end,
                    flow=edge.flow,
                    sink=edge.sink,
                    kind=edge.kind,
                )
                for edge in found.edges
            ],
        )

    return router
