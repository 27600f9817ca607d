"""The control plane for workers on other machines: internal, and not in the OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from penstock.api.bodies import read_body
from penstock.control.documents.service import Service
from penstock.control.fleet.control import Assignments
from penstock.control.registry.documents import Documents
from penstock.control.wire.methods import methods_of
from penstock.errors import Invalid, NotFound, Problem
from penstock.specs.documents import RUNNABLE

NEWS = {"join", "draining", "leave", "release"}
"""Methods after which flows may wait for a worker."""

MOST_BYTES = 256 * 1024 * 1024
"""Maximum size of a worker's message in bytes: at most the events of a micro-batch appended at once."""


def wire_routes(service: Service) -> APIRouter:
    """The routes of the control plane; the last part of the path is the method.

    The guard passes on only requests with a worker's token, even while authentication is off.
    """
    router = APIRouter(prefix="/wire", include_in_schema=False)
    parts: dict[str, tuple[Callable[..., object], Any]] = {
        "documents": (Documents, service.registry),
        "flows": (Assignments, service.flows),
    }

    def answer(part: str, name: str, body: bytes) -> bytes:
        protocol, target = parts.get(part, (None, None))
        method = methods_of(protocol).get(name) if protocol is not None else None
        if method is None:
            raise NotFound(Problem(code="not_found", message=f"there is no method '{part}/{name}'"))
        result = method.call(target, body)
        if name in NEWS:
            service.coordinator.poke()
        return result

    def directory_of(stream: str, life: str) -> Path:
        # Documents of two kinds can have the same id; the prefix identifies the kind.
        for kind in ("", *(f"{each.lower()}:" for each in RUNNABLE)):
            with contextlib.suppress(NotFound):
                found = service.streams.place(f"{kind}{stream}").directory
                if found.name == life:
                    return found
        raise NotFound(Problem(code="not_found", message=f"stream '{stream}' no longer exists"))

    @router.post("/streams/{stream}/{life}/{name}")
    async def call_storage(stream: str, life: str, name: str, request: Request) -> Response:
        message = await read_body(request, MOST_BYTES)
        directory = await run_in_threadpool(directory_of, stream, life)
        host = service.streams.host
        try:
            if name == "wait":
                result = await host.wait(directory, message)
            else:
                result = await run_in_threadpool(host.answer, directory, name, message)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            problem = Problem(code="invalid_call", message=f"invalid '{name}': {error}")
            raise Invalid(problem) from None
        return Response(result, media_type="application/octet-stream")

    @router.post("/{part}/{name}")
    async def call(part: str, name: str, request: Request) -> Response:
        body = await read_body(request, MOST_BYTES)
        result = await run_in_threadpool(answer, part, name, body)
        return Response(result, media_type="application/json")

    return router
