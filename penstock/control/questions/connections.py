"""Connection tests in a worker, requested by the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from penstock.connectors.probe import Probe
from penstock.engine.plan.connections import ConnectorRole, probe_connector
from penstock.engine.plan.declared_site import declared_site
from penstock.policy import Policy

if TYPE_CHECKING:
    from penstock.control.fleet.worker import Worker


class ProbeRequest(BaseModel):
    """A connector to test."""

    role: ConnectorRole
    spec: dict[str, Any]


def connection_routes(worker: Worker) -> APIRouter:
    """The route of a worker for connection tests."""
    router = APIRouter()

    @router.post("/probe")
    async def probe(request: ProbeRequest) -> Probe:
        return await run_in_threadpool(_probe, worker, request)

    return router


def _probe(worker: Worker, request: ProbeRequest) -> Probe:
    def lookup(kind: str, name: str) -> Mapping[str, Any] | None:
        record = worker.registry.find(kind, name)
        return record.document if record else None

    settings = worker.settings
    site = declared_site({}, lookup, settings.defaults.model_dump(), Policy.of(settings))
    return probe_connector(request.role, request.spec, site, worker.spark, lookup=lookup)
