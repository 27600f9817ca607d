"""Text that is meant to hurt is refused, quickly and with a sentence."""

from __future__ import annotations

import json

import pytest

from penstock.specs.text import DEEPEST, Unreadable, read_all, read_one


def doubling(levels: int) -> str:
    """A few hundred bytes that stand for 10^levels values."""
    rows = ["a0: &a0 [" + ",".join("x" * 10) + "]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "levels deep"),
        ("[" * 100_000 + "]" * 100_000, "levels deep"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "levels deep"),
        ("- " * 100_000, "levels deep"),
        (doubling(9), "more than 1000000 values"),
        ("a: &x [*x]", "refers to its own parent"),
        ("a: .nan", "out of range"),
        ("a: -.inf", "out of range"),
        (f"a: 0x{'f' * 99}", "out of range"),
        (json.dumps({"a": 2**64}), "out of range"),
        ("a: " + "9" * 5000, "4300 digits"),
        ('{"a": "\\ud800"}', "Unicode"),
        ("1: one", "the key 1 is not text; put it in quotes"),
        ("? [a, b]\n: c", "the key is not text"),
        ("a: !!binary aGk=", "tag"),
        ("a: !!set {b}", "tag"),
        ('a: !!int ""', "index"),
        ("a: !!bool x", "x"),
        (b"a: \x00", "control characters"),
        (b"a: \xc3\x28", "UTF-8"),
    ],
)
def test_hostile_text_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_one(text)


def test_what_looks_hostile_and_is_not() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert json.dumps(read_one(deep)) == deep
    assert read_one("a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}")["b"] == {"x": 2, "y": 1}
    assert read_one("a: &a {x: 1}\nb: *a\nc: *a")["c"] == {"x": 1}


def test_json_means_what_json_says() -> None:
    assert read_one(r'{"a": "\ud83d\ude00", "b": 1e3, "c": "\/"}') == {"a": "😀", "b": 1000.0, "c": "/"}
    assert read_one(json.dumps({"k" * 2000: 1})) == {"k" * 2000: 1}


def test_one_document_is_one() -> None:
    with pytest.raises(Unreadable, match="found 2"):
        read_one("a: 1\n---\nb: 2")
    assert len(read_all("a: 1\n---\nb: 2")) == 2
