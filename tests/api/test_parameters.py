"""A parameter that a route does not know is refused: the request it was meant for would do something else."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.api.kit import Api, codes, stream


def operations(client: httpx.Client) -> list[tuple[str, str, list[str]]]:
    """Method, path and declared query parameters of every route."""
    paths: dict[str, Any] = client.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), re.sub(r"{[^}]+}", "1", path), [p["name"] for p in known if p["in"] == "query"])
        for path, item in paths.items()
        for method, operation in item.items()
        for known in [operation.get("parameters", [])]
        if path != "/session/oidc/callback"  # an OpenID Connect provider adds parameters of its own
    ]


def test_every_route_refuses_a_parameter_it_does_not_know(client: httpx.Client) -> None:
    found = operations(client)
    assert len(found) > 100
    for method, path, known in [*found, ("GET", "/docs", []), ("GET", "/openapi.json", [])]:
        refused = client.request(method, path, params={"colour": "red"})
        assert (refused.status_code, codes(refused)) == (422, ["unknown_parameter"]), (method, path)
        body = refused.json()
        assert (body["path"], "'colour'" in body["message"]) == ("colour", True)
        assert body["hint"] == (
            f"one of: {', '.join(sorted(known))}" if known else "this route has no parameters"
        )


def test_the_nearest_name_is_the_hint(client: httpx.Client) -> None:
    for method, path, known in operations(client):
        for name in known:
            refused = client.request(method, path, params={f"{name}x": "1"})
            assert refused.json()["hint"] == f"did you mean '{name}'?", (method, path)


def test_a_misspelt_dry_run_applies_nothing(client: httpx.Client) -> None:
    refused = client.post("/bundle", params={"dryrun": "true"}, json=stream("orders"))
    assert codes(refused) == ["unknown_parameter"]
    assert refused.json()["hint"] == "did you mean 'dry_run'?"
    assert client.get("/streams").json()["total"] == 0


def test_all_of_them_are_named(client: httpx.Client) -> None:
    refused = client.post("/streams/orders/events", params={"producr": "p", "bach": 1, "key": "k"})
    assert [problem["path"] for problem in refused.json()["errors"]] == ["producr", "bach"]


@pytest.mark.parametrize("path", ["/ui", "/ui/streams", "/streams"])
def test_the_web_app_has_parameters_of_its_own(api: Api, path: str) -> None:
    found = api.client.get(path, params={"tab": "browse"}, headers={"Accept": "text/html"})
    assert found.status_code in (200, 307, 503)
