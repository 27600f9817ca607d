"""The application: every route over one service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse, JSONResponse

from penstock import __version__
from penstock.api import errors
from penstock.api.access.audit import audit_routes
from penstock.api.access.guard import Guard
from penstock.api.access.headers import SecurityHeaders
from penstock.api.access.oidc import oidc_routes
from penstock.api.access.rules import Rules
from penstock.api.access.sessions import session_routes
from penstock.api.access.tokens import token_routes
from penstock.api.access.trail import Trail
from penstock.api.access.users import user_routes
from penstock.api.batches import batch_routes
from penstock.api.body_limit import BodyLimit
from penstock.api.bundle import bundle_routes
from penstock.api.catalogue import catalogue_routes
from penstock.api.clients import client_routes
from penstock.api.connections import connection_routes
from penstock.api.documents import document_routes
from penstock.api.edits import plan_routes
from penstock.api.events import event_routes
from penstock.api.feed import Feed
from penstock.api.flow_logs import log_routes
from penstock.api.functions import function_routes
from penstock.api.health import health_routes
from penstock.api.history import history_routes
from penstock.api.ingest import Ingest, ingest_routes
from penstock.api.kinds import KINDS
from penstock.api.letters import letter_routes
from penstock.api.lifecycle import lifecycle_routes
from penstock.api.log_search import log_search_routes
from penstock.api.moves import move_routes
from penstock.api.openapi import openapi
from penstock.api.origin import SameOrigin
from penstock.api.overview import Followers, overview_routes
from penstock.api.packing import Packing
from penstock.api.params import known_parameters
from penstock.api.positions import position_routes
from penstock.api.query import query_routes
from penstock.api.reference import render
from penstock.api.replays import replay_routes
from penstock.api.revisions import revision_routes
from penstock.api.settings_view import settings_routes
from penstock.api.shortcut import Shortcut
from penstock.api.sinks import sink_routes
from penstock.api.story import story_routes
from penstock.api.streams import stream_routes
from penstock.api.testruns import test_routes
from penstock.api.topology import topology_routes
from penstock.api.ui import Doorman, ui_routes
from penstock.api.web_files import BUILT
from penstock.api.wire import wire_routes
from penstock.control.access.access import Access
from penstock.control.documents.service import Service
from penstock.control.monitor.pulse import Pulse
from penstock.control.streams.moves import Moves

THREADS = 100
"""Maximum concurrent requests. Many of them only wait for a pipeline, and must not delay the others."""

DESCRIPTION = "Streaming data pipelines on Apache Spark. Request bodies are JSON or YAML."


def create_app(service: Service, ui: Path = BUILT) -> FastAPI:
    """The REST API of a service, and the web app that was built into the directory `ui`."""
    app = FastAPI(
        title="Penstock",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        responses=errors.failures(422, 500, 503),
        dependencies=[Depends(known_parameters)],
        # Penstock exports nothing to OpenTelemetry; FastAPI would look for exporters on every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.feed = Feed(service.registry)
    app.state.pulse = pulse = Pulse(service)
    app.state.followers = Followers(pulse)
    app.state.moves = Moves(service)
    app.state.access = access = Access(service.settings, service.registry)
    ingest = Ingest(service)
    app.include_router(ingest_routes(ingest))  # first: routes are matched in order, and this one is busy
    app.include_router(health_routes(service))
    app.include_router(client_routes())
    for kind in KINDS:
        app.include_router(document_routes(service, kind))
        app.include_router(revision_routes(service, kind))
        app.include_router(plan_routes(service, kind))
        if kind.runs:
            app.include_router(lifecycle_routes(service, kind))
            app.include_router(letter_routes(service, kind))
            app.include_router(log_routes(service, kind, app.state.feed))
            app.include_router(batch_routes(service, kind))
            app.include_router(sink_routes(service, kind))
        if kind.name in ("Pipeline", "Task", "Sink"):
            app.include_router(position_routes(service, kind))
        if kind.name in ("Pipeline", "Task"):
            app.include_router(replay_routes(service, kind))
            app.include_router(story_routes(service, kind))
    app.include_router(stream_routes(service, app.state.feed))
    app.include_router(move_routes(app.state.moves))
    app.include_router(query_routes(service))
    app.include_router(test_routes(service))
    app.include_router(bundle_routes(service))
    app.include_router(catalogue_routes())
    app.include_router(connection_routes(service))
    app.include_router(function_routes(service))
    app.include_router(settings_routes(service))
    app.include_router(event_routes(app.state.feed))
    app.include_router(overview_routes(pulse, app.state.followers))
    app.include_router(topology_routes(service))
    app.include_router(history_routes(service, pulse))
    app.include_router(log_search_routes(service))
    app.include_router(wire_routes(service))
    app.include_router(session_routes(access))
    app.include_router(oidc_routes(access))
    app.include_router(user_routes(access))
    app.include_router(token_routes(access))
    app.include_router(audit_routes(access))
    app.include_router(ui_routes(ui))
    _describe(app)
    _protect(app, service, access, ingest)
    return app


def _protect(app: FastAPI, service: Service, access: Access, ingest: Ingest) -> None:
    """Add the middleware in front of the routes. The middleware added last is the first to run."""
    rules = Rules(app)
    app.add_middleware(BodyLimit, limit=service.settings.limits.body_bytes)
    app.add_middleware(Trail, access=access, rules=rules, registry=service.registry)
    app.add_middleware(Shortcut, ingest=ingest)
    app.add_middleware(Guard, access=access, rules=rules)
    errors.install(app)
    app.add_middleware(Packing)
    app.add_middleware(Doorman)
    app.add_middleware(SameOrigin, settings=lambda: service.settings, access=access)
    app.add_middleware(SecurityHeaders, access=access)


def _describe(app: FastAPI) -> None:
    def described() -> dict[str, Any]:
        app.openapi_schema = app.openapi_schema or openapi(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    def document() -> JSONResponse:
        return JSONResponse(app.openapi())

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(render(app.openapi()), headers={"Content-Security-Policy": policy})


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    app.state.followers.open()
    await to_thread.run_sync(app.state.moves.settle)
    app.state.pulse.start()
    yield
    app.state.pulse.stop()
    await to_thread.run_sync(app.state.access.refusals.flush)
