from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from penstock.specs.catalog import ROLES, Role, catalog, load
from penstock.specs.documents import Models
from penstock.specs.text import read_one
from penstock.specs.validation import parse


def test_what_cannot_be_imported_stands_aside() -> None:
    found = load(
        "sink",
        [
            EntryPoint("drop", "penstock.connectors.drop:DropSink", "penstock.sinks"),
            EntryPoint("gone", "no.such.module:Sink", "penstock.sinks"),
            EntryPoint("odd", "penstock.errors:Problem", "penstock.sinks"),
        ],
    )
    assert list(found.classes) == ["drop"]
    assert "ModuleNotFoundError" in found.broken["gone"]
    assert "not a Component" in found.broken["odd"]


@pytest.mark.parametrize("role", ROLES)
def test_every_component_is_described_and_shows_a_valid_example(role: Any) -> None:
    assert not catalog(role).broken
    for name, cls in catalog(role).classes.items():
        assert cls.__doc__, name
        assert cls.example, name
        for field, info in cls.model_fields.items():
            assert field == "type" or info.description, f"{name}.{field}"
        example = read_one(cls.example)
        spec: dict[str, Any] = {"source": {"type": "generate"}, "sinks": [{"type": "drop"}]}
        spec |= {
            "source": {"source": example},
            "sink": {"sinks": [example]},
            "processor": {"processors": [example]},
        }[role]
        parse({"kind": "Pipeline", "metadata": {"name": "example"}, "spec": spec})


def test_every_field_of_every_kind_is_described() -> None:
    for kind, model in Models.by_kind.items():
        schema = model.model_json_schema()
        for name, definition in {kind: schema, **schema["$defs"]}.items():
            for field, about in definition.get("properties", {}).items():
                plain = field in ("type", "kind", "metadata", "spec") or "description" in about
                assert plain, f"{name}.{field} has no description"


@pytest.mark.parametrize("role", ["source", "sink"])
def test_no_field_of_a_connector_hides_one_of_its_document(role: Role) -> None:
    """A Source or Sink document has fields of its own beside those of its connector, such as `stream`."""
    own = {"stream", "auto_create_stream", "batch", "restart"}
    hidden = {
        name: own & cls.model_fields.keys() for name, cls in catalog(role).classes.items() if name != "stream"
    }
    assert {name: fields for name, fields in hidden.items() if fields} == {}
