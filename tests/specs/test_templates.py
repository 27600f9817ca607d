"""Texts with columns in them, and secrets in such texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.specs.catalog import catalog
from penstock.specs.templated import templates_in
from penstock.specs.templates import as_literal, columns_of, filled, parts_of, template_fields
from penstock.specs.variables import resolve

SECRET = "p{a}ss}${x}$"


def resolved(raw: dict[str, Any]) -> dict[str, Any]:
    value, problems = resolve(
        raw["spec"], {}, lambda _: True, "spec", reads=lambda _: SECRET, templates=templates_in(raw)
    )
    assert problems == []
    return dict(value)


@given(st.text())
def test_a_literal_is_filled_with_what_it_was(text: str) -> None:
    assert filled(as_literal(text), {}) == text
    assert list(columns_of(as_literal(text))) == []


def test_the_text_between_two_columns_is_one_part() -> None:
    assert list(parts_of("{a}x{{y}}z{b}")) == [("", "a"), ("x{y}z", "b")]
    assert list(parts_of("{a}{{}}")) == [("", "a"), ("{}", None)]


@pytest.mark.parametrize(
    ("type_", "field"),
    [("kafka", "topic"), ("mqtt", "topic"), ("amqp", "routing_key"), ("nats", "subject"), ("redis", "key")],
)
def test_braces_of_a_secret_stand_for_themselves_in_the_target_of_a_message(type_: str, field: str) -> None:
    template = "${secret:s}.{id}"
    sink = {"type": type_, field: template}
    for raw, place in (
        ({"kind": "Sink", "spec": sink}, lambda spec: spec),
        ({"kind": "Pipeline", "spec": {"sinks": [sink]}}, lambda spec: spec["sinks"][0]),
    ):
        made = place(resolved(raw))[field]
        assert list(columns_of(made)) == ["id"]
        assert filled(made, {"id": 7}) == f"{SECRET}.7"


def test_all_texts_of_a_template_field_are_templates_and_those_of_others_are_not() -> None:
    sink = {"type": "http", "headers": {"X-Key": "${secret:s}"}, "auth": {"bearer": "${secret:s}"}}
    step = {"type": "http", "url": "http://x/${secret:s}", "body": {"a": ["${secret:s}"]}}
    raw = {"kind": "Pipeline", "spec": {"processors": [step], "sinks": [sink]}}
    spec = resolved(raw)
    assert spec["sinks"][0]["auth"]["bearer"] == SECRET
    assert filled(spec["sinks"][0]["headers"]["X-Key"], {}) == SECRET
    assert filled(spec["processors"][0]["url"], {}) == f"http://x/{SECRET}"
    assert filled(spec["processors"][0]["body"]["a"][0], {}) == SECRET
    database = {"kind": "Sink", "spec": {"type": "sql", "url": "postgresql://me:${secret:s}@db/shop"}}
    assert resolved(database)["url"] == f"postgresql://me:{SECRET}@db/shop"


def test_every_field_that_says_so_is_a_template() -> None:
    """A field whose description speaks of `{column}` is marked."""
    for role in ("source", "processor", "sink"):
        for cls in catalog(role).classes.values():
            said = [
                info.alias or name
                for name, info in cls.model_fields.items()
                if "`{column}`" in (info.description or "")
            ]
            assert set(said) <= set(template_fields(cls)), cls
