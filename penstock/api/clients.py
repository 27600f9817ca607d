"""The number of clients of the server, and of rejected and closed connections."""

from fastapi import APIRouter, Request
from pydantic import Field

from penstock.api.traffic import traffic_of
from penstock.api.views import View


class Clients(View):
    """The clients of this server, with the limits in effect, and counters since its start."""

    connections: int
    most_connections: int
    followers: int = Field(description="Clients that follow events, logs, streams or the overview.")
    most_followers: int
    refused_connections: int = Field(description="Answered 503, because there were too many.")
    refused_followers: int = Field(description="Answered 503, because there were too many.")
    slow_senders: int = Field(description="Closed, because a request did not arrive in time.")
    slow_readers: int = Field(description="Closed, because an answer was not read in time.")


def client_routes() -> APIRouter:
    """The route for the number of clients."""
    router = APIRouter()

    # Runs in the event loop, which owns the counters.
    @router.get(
        "/clients", tags=["health"], summary="Count the clients of the server", operation_id="getClients"
    )
    async def clients(request: Request) -> Clients:
        traffic = traffic_of(request.scope)
        return Clients(
            connections=traffic.connections,
            most_connections=traffic.most_connections,
            followers=traffic.followers,
            most_followers=traffic.limits.followers,
            refused_connections=traffic.refused_connections,
            refused_followers=traffic.refused_followers,
            slow_senders=traffic.slow_senders,
            slow_readers=traffic.slow_readers,
        )

    return router
