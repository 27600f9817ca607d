from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.specs.text import Unreadable, read_all, read_one, read_path, to_json, to_yaml

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(scalars, lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=20)


@given(st.dictionaries(st.text(min_size=1), values, min_size=1))
def test_what_is_written_is_read_again(value: dict[str, object]) -> None:
    assert read_one(to_json(value)) == value
    assert read_one(to_yaml(value)) == value


def test_many_documents_in_one_text() -> None:
    assert read_all("kind: A\n---\nkind: B\n---\n") == [{"kind": "A"}, {"kind": "B"}]
    assert read_all(json.dumps([{"kind": "A"}])) == [{"kind": "A"}]
    assert read_all("kind: Bundle\ndocuments: [{kind: A}]") == [{"kind": "A"}]
    assert read_all("documents: [{kind: A}]") == [{"kind": "A"}]
    assert read_all("documents: []") == []


def test_times_stay_text() -> None:
    assert read_one("at: 2026-01-02T03:04:05Z") == {"at": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    "text", ["a: [", "a: 1\na: 2", "\ta: 1", b"\xff\xfe\x00", "a: !!python/object:os.x {}"]
)
def test_what_cannot_be_read_says_where(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_all(text)
    assert caught.value.problems[0].code == "not_yaml"


def test_a_word_that_yaml_takes_for_true_can_name_a_field() -> None:
    assert read_one("on: {no: on, 'yes': 1}") == {"on": {"no": True, "yes": 1}}


def test_a_key_given_twice_is_named() -> None:
    with pytest.raises(Unreadable, match=r"line 2, column 1: duplicate key 'a'"):
        read_all("a: 1\na: 2")


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: B")
    (tmp_path / "a.json").write_text('{"kind": "A"}')
    (tmp_path / "notes.txt").write_text("not this")
    assert read_path(tmp_path) == [{"kind": "A"}, {"kind": "B"}]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"nothing\.yaml"):
        read_path(tmp_path / "nothing.yaml")
