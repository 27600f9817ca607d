"""The rules of routes: the role that each needs, and the name of its action in the audit trail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from re import Pattern
from typing import Any

from fastapi import FastAPI
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.convertors import Convertor
from starlette.routing import compile_path
from starlette.types import Scope

from penstock.api.kinds import KINDS
from penstock.api.sse import EventStream

KIND = "/{kind}"
"""A placeholder for the path of each kind of document, such as `/pipelines`."""

READS: dict[str, tuple[str, ...]] = {
    "public": (
        "/healthz",
        "/readyz",
        "/ui",
        "/ui/{path:path}",
        "/session",
        "/session/oidc",
        "/session/oidc/callback",
    ),
    "viewer": (
        KIND,
        f"{KIND}/{{name}}",
        f"{KIND}/{{name}}/revisions",
        f"{KIND}/{{name}}/revisions/{{number}}",
        f"{KIND}/{{name}}/diff",
        f"{KIND}/{{name}}/progress",
        f"{KIND}/{{name}}/history",
        f"{KIND}/{{name}}/logs",
        f"{KIND}/{{name}}/logs/follow",
        f"{KIND}/{{name}}/batches",
        f"{KIND}/{{name}}/sinks",
        f"{KIND}/{{name}}/dead-letters",
        f"{KIND}/{{name}}/dead-letters/{{offset:int}}",
        f"{KIND}/{{name}}/replays",
        f"{KIND}/{{name}}/story",
        "/streams/{name}/events",
        "/streams/{name}/tail",
        "/streams/{name}/stats",
        "/streams/{name}/move",
        "/bundle",
        "/bundle/progress/{id}",
        "/connectors",
        "/connectors/{role}/{type:connector}",
        "/processors",
        "/processors/{type}",
        "/functions",
        "/clients",
        "/workers",
        "/overview",
        "/overview/follow",
        "/topology",
        "/history",
        "/logs",
        "/events",
        "/openapi.json",
        "/docs",
        "/tokens",
    ),
    "operator": ("/queries",),
    "admin": ("/settings", "/users", "/audit"),
}
"""The paths that can be read with GET, by the role that they need."""

CHANGES: dict[str, dict[str, str | None]] = {
    "public": {
        "POST /session": "session.login",
        "DELETE /session": "session.logout",
        "POST /session/setup": "session.setup",
    },
    "viewer": {
        "PUT /session/password": "user.password",
        "POST /tokens": "token.create",
        "DELETE /tokens/{id}": "token.revoke",
    },
    "ingest": {"POST /ingest/{source:path}": None},
    "operator": {
        **{
            f"POST {KIND}/{{name}}/{action}": f"flow.{action}"
            for action in ("pause", "resume", "stop", "start", "restart")
        },
        f"POST {KIND}/{{name}}/replay": "flow.replay",
        f"POST {KIND}/{{name}}/position": "flow.position",
        f"POST {KIND}/{{name}}/sinks/{{sink}}/catch-up": "flow.catch_up",
        f"POST {KIND}/{{name}}/dead-letters/replay": "letter.replay",
        f"PUT {KIND}/{{name}}/dead-letters/{{offset:int}}": "letter.edit",
        f"DELETE {KIND}/{{name}}/dead-letters/{{offset:int}}": "letter.discard",
        f"POST {KIND}/{{name}}/dead-letters/{{offset:int}}/restore": "letter.restore",
        f"POST {KIND}/{{name}}/dead-letters/{{offset:int}}/send": "letter.send",
        "DELETE /streams/{name}/readers/{reader}": "reader.forget",
        # Requests that send events or only read are not in the audit trail.
        "POST /streams/{name}/events": None,
        "POST /query": None,
        "DELETE /query/{id}": None,
        "PUT /queries/{name}": "query.save",
        "DELETE /queries/{name}": "query.delete",
        "POST /test": None,
        "POST /validate": None,
    },
    "editor": {
        f"POST {KIND}": "{kind}.create",
        f"PUT {KIND}/{{name}}": "{kind}.update",
        f"PATCH {KIND}/{{name}}": "{kind}.update",
        f"DELETE {KIND}/{{name}}": "{kind}.delete",
        f"POST {KIND}/{{name}}/rollback": "{kind}.rollback",
        f"POST {KIND}/{{name}}/plan": None,
        "POST /bundle": "bundle.import",
        "POST /streams/{name}/move": "stream.move",
        "DELETE /streams/{name}/move": "stream.move_undo",
        "POST /connectors/{type}/check": "connector.check",
    },
    "admin": {
        "POST /users": "user.create",
        "PATCH /users/{name}": "user.update",
        "DELETE /users/{name}": "user.delete",
        "POST /workers/{worker}/drain": "worker.drain",
    },
    "worker": {"POST /wire/{part}/{name}": None, "POST /wire/streams/{stream}/{life}/{name}": None},
}
"""The requests that perform an action, by the role that they need, with their names in the audit trail."""


@dataclass(frozen=True)
class Rule:
    """The role that a route needs, and its action."""

    role: str
    action: str | None
    kind: str | None
    """The kind of document that the route is about."""
    declared: str
    """The entry in `READS` or `CHANGES` that declares the rule."""


@dataclass(frozen=True)
class Matched:
    """A request that matches a route."""

    rule: Rule
    params: dict[str, Any]
    follows: bool
    """Whether the route has a streaming response."""


@dataclass(frozen=True)
class _Guarded:
    methods: Collection[str]
    path: Pattern[str]
    convertors: Mapping[str, Convertor[Any]]
    rule: Rule
    follows: bool


class Rules:
    """The rules of the routes of an app; ValueError if a route has no rule, or a rule no route."""

    def __init__(self, app: FastAPI) -> None:
        declared, used = declared_rules(), set[str]()
        self._by_place: defaultdict[str, list[_Guarded]] = defaultdict(list)
        for route in iter_route_contexts(app.routes):
            for method in (route.methods or {"ANY"}) - {"HEAD"}:
                rule = declared.get(f"{method} {route.path}")
                if rule is None:
                    raise ValueError(f"no role is declared for {method} {route.path}: see {__name__}")
                used.add(rule.declared)
                self._add(route, method, rule)
        if missing := {rule.declared for rule in declared.values()} - used:
            raise ValueError(f"roles are declared for what is no route: {sorted(missing)}")

    def find(self, scope: Scope) -> Matched | None:
        """The rule of a request; None if no route serves it."""
        path, method = scope["path"], scope["method"]
        for route in self._by_place.get(_place(path), ()):
            if method in route.methods and (found := route.path.match(path)):
                params = {
                    name: route.convertors[name].convert(text) for name, text in found.groupdict().items()
                }
                return Matched(route.rule, params, route.follows)
        return None

    def _add(self, route: RouteContext, method: str, rule: Rule) -> None:
        pattern, _, convertors = compile_path(str(route.path))
        methods = {"GET", "HEAD"} if method == "GET" else {method}
        follows = route.response_class is EventStream
        self._by_place[_place(str(route.path))].append(_Guarded(methods, pattern, convertors, rule, follows))


@cache
def declared_rules() -> Mapping[str, Rule]:
    """The rule of every route, by method and path. Not every kind has every route with `KIND`."""
    found: dict[str, Rule] = {}
    for role, paths in READS.items():
        for path in paths:
            found |= _expanded(f"GET {path}", role, None)
    for role, actions in CHANGES.items():
        for name, action in actions.items():
            found |= _expanded(name, role, action)
    return found


def _expanded(name: str, role: str, action: str | None) -> dict[str, Rule]:
    if KIND not in name:
        return {name: Rule(role, action, "Stream" if " /streams/" in name else None, name)}
    return {
        name.replace(KIND, f"/{kind.place}"): Rule(
            role, action and action.replace("{kind}", kind.name.lower()), kind.name, name
        )
        for kind in KINDS
    }


def _place(path: str) -> str:
    return path[1:].partition("/")[0]
