"""Names in any script and their ids."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Invalid
from penstock.specs.names import NAME, NAME_PATTERN, derive_id, name_fault
from penstock.specs.validation import parse

VECTORS = json.loads((Path(__file__).parent / "ids.json").read_text())
"""Names and ids that the web app tests too."""


@pytest.mark.parametrize(("name", "made"), VECTORS)
def test_ids_are_derived_by_transliteration(name: str, made: str) -> None:
    assert derive_id(name) == made
    assert derive_id(made) == made


@given(st.from_regex(NAME, fullmatch=True))
def test_ids_of_ascii_names_stay_as_they_were(name: str) -> None:
    assert derive_id(name) == re.sub(r"\s", "_", name.strip().lower())
    assert name_fault(name) is None
    assert re.fullmatch(NAME_PATTERN, name)


@given(st.text(st.characters(max_codepoint=0x7F), min_size=1, max_size=130))
def test_the_pattern_of_the_schema_is_the_rule_for_ascii(name: str) -> None:
    assert bool(re.fullmatch(NAME_PATTERN, name)) == bool(NAME.fullmatch(name))


@given(st.text(min_size=1, max_size=128))
def test_every_valid_name_has_a_valid_id(name: str) -> None:
    if name_fault(name) is None:
        assert NAME.fullmatch(derive_id(name))
        assert derive_id(derive_id(name)) == derive_id(name)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("注" * 128, "longer than 128"),
        ("\u0627", "no id can be derived"),
        ("a/ä", "a name must have"),
        ("ä.", "a name must have"),
        ("ä\u202eb", "a name must have"),
        ("\u00a0ä", "a name must have"),
    ],
)
def test_names_without_an_id_are_refused(name: str, fault: str) -> None:
    found = name_fault(name)
    assert found is not None
    assert fault in found.message


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("\u0627", "no_id", "add Latin letters or digits; the id is made of them"),
        ("注" * 128, "id_too_long", "shorten the name"),
        ("orders 🚀", "invalid_name", "remove '🚀'"),
        ("a/b", "invalid_name", "remove '/'"),
        ("", "invalid_name", "change its length, its first or its last character"),
    ],
)
def test_a_document_with_such_a_name_has_a_code_a_path_and_a_hint(name: str, code: str, hint: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse({"kind": "Stream", "metadata": {"name": name}, "spec": {}})
    (problem,) = caught.value.problems
    assert (problem.code, problem.path, problem.hint) == (code, "metadata.name", hint)
