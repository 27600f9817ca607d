from __future__ import annotations

import httpx
import jsonschema
import pytest

from penstock.api import catalogue
from penstock.specs.catalog import Catalog
from penstock.specs.text import read_one
from tests.api.kit import codes


def test_connectors_describe_themselves(client: httpx.Client) -> None:
    found = client.get("/connectors").json()
    assert set(found) == {"sources", "sinks"}
    sinks = {sink["type"]: sink for sink in found["sinks"]}
    assert sinks["file"]["guarantee"] == "exactly-once"
    assert sinks["file"]["summary"].startswith("Writes each batch")
    assert sinks["file"]["description"].startswith(sinks["file"]["summary"])
    assert "path" in sinks["file"]["schema"]["properties"]
    for component in [*found["sources"], *found["sinks"], *client.get("/processors").json()]:
        assert component["error"] is None, component
        assert component["summary"], component
        jsonschema.Draft202012Validator.check_schema(component["schema"])
        jsonschema.validate(read_one(component["example"]), component["schema"])


def test_one_of_them(client: httpx.Client) -> None:
    assert client.get("/connectors/source/file").json()["role"] == "source"
    assert client.get("/processors/sql").json()["type"] == "sql"
    missing = client.get("/connectors/sink/fiel")
    assert (missing.status_code, codes(missing)) == (404, ["not_found"])
    assert missing.json()["hint"] == "did you mean 'file'?"
    assert client.get("/processors/nothing").status_code == 404
    assert client.get("/connectors/tap/file").status_code == 422


def test_a_broken_plugin_is_listed_with_its_error(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Catalog("sink", {}, {"gadget": "ImportError: no module named gadget"})
    monkeypatch.setattr(catalogue, "catalog", lambda role: broken)
    catalogue._components.cache_clear()
    try:
        (gadget,) = client.get("/connectors").json()["sinks"]
    finally:
        catalogue._components.cache_clear()
    assert (gadget["type"], gadget["schema"]) == ("gadget", None)
    assert gadget["error"] == "ImportError: no module named gadget"
