"""The control plane for workers on other machines: not for people, and not in the OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from penstock.control.documents.service import Service
from penstock.control.fleet.control import Assignments
from penstock.control.registry.documents import Documents
from penstock.control.wire.methods import methods_of
from penstock.control.wire.tokens import Tokens
from penstock.errors import Invalid, NotFound, Problem
from penstock.specs.documents import RUNNABLE

NEWS = {"join", "draining", "leave", "release"}
"""Methods after which flows may wait for a worker."""


def wire_routes(service: Service) -> APIRouter:
    """One route for each part of the control plane; the method is the last part of the path."""
    router = APIRouter(prefix="/wire", include_in_schema=False)
    tokens = Tokens(service.registry)
    parts: dict[str, tuple[Callable[..., object], Any]] = {
        "documents": (Documents, service.registry),
        "flows": (Assignments, service.flows),
    }

    def answer(part: str, name: str, given: str, body: bytes) -> bytes:
        tokens.require(given.removeprefix("Bearer "))
        protocol, target = parts.get(part, (None, None))
        method = methods_of(protocol).get(name) if protocol is not None else None
        if method is None:
            raise NotFound(Problem(code="not_found", message=f"there is no method '{part}/{name}'"))
        result = method.call(target, body)
        if name in NEWS:
            service.coordinator.poke()
        return result

    def directory_of(stream: str, life: str, given: str) -> Path:
        tokens.require(given.removeprefix("Bearer "))
        # Documents of two kinds can have the same id; the prefix identifies the kind.
        for kind in ("", *(f"{each.lower()}:" for each in RUNNABLE)):
            with contextlib.suppress(NotFound):
                found = service.streams.place(f"{kind}{stream}").directory
                if found.name == life:
                    return found
        raise NotFound(Problem(code="not_found", message=f"stream '{stream}' no longer exists"))

    @router.post("/streams/{stream}/{life}/{name}")
    async def call_storage(stream: str, life: str, name: str, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if (message := await _body(request)) is None:
            return Response(status_code=400)
        directory = await run_in_threadpool(directory_of, stream, life, given)
        host = service.streams.host
        try:
            if name == "wait":
                result = await host.wait(directory, message)
            else:
                result = await run_in_threadpool(host.answer, directory, name, message)
        except (ValueError, TypeError) as error:
            problem = Problem(code="invalid_call", message=f"invalid '{name}': {error}")
            raise Invalid(problem) from None
        return Response(result, media_type="application/octet-stream")

    @router.post("/{part}/{name}")
    async def call(part: str, name: str, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if (body := await _body(request)) is None:
            return Response(status_code=400)
        result = await run_in_threadpool(answer, part, name, given, body)
        return Response(result, media_type="application/json")

    return router


async def _body(request: Request) -> bytes | None:
    """The body of a request; None if the client disconnected while sending it."""
    try:
        return await request.body()
    except ClientDisconnect:
        return None
