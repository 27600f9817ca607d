"""Every configuration of the corpus: valid documents come out, and nothing is lost silently."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.cli.convert.located import Node, read_located
from penstock.cli.convert.render import to_commented_yaml
from penstock.cli.convert.systems import SYSTEMS, Converted, convert_text
from penstock.errors import Invalid
from penstock.specs.text import read_all
from penstock.specs.validation import parse

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")

SELECTS = {"type", "class", "connector.class", "mode", "kind", "apiVersion"}
"""Fields that select a conversion: to change one changes which others are read."""


def convert(path: Path, text: str | None = None) -> Converted:
    return convert_text(path.read_text() if text is None else text, path.stem)


@each_file
def test_the_system_is_recognised(path: Path) -> None:
    assert convert(path).system == path.parent.name


@each_file
def test_documents_are_valid_or_a_finding_says_why(path: Path) -> None:
    result = convert(path)
    text = to_commented_yaml(result.documents, result.findings, "converted")
    written = read_all(text)
    assert written == result.documents, "comments changed the documents"
    excused = {each.at for each in result.findings if each.code in ("not_installed", "invalid")}
    for i, document in enumerate(written):
        if not any(str(at).startswith(f"documents[{i}]") for at in excused):
            parse(document)
        else:
            with pytest.raises(Invalid):
                parse(document)


@each_file
def test_findings_have_a_line_and_stand_at_their_place(path: Path) -> None:
    result = convert(path)
    lines = path.read_text().splitlines()
    text = to_commented_yaml(result.documents, result.findings, "converted")
    for each in result.findings:
        assert 1 <= each.line <= len(lines)
        if each.path and not each.path.endswith("]"):
            name = (
                each.path.rsplit('."', 1)[-1].strip('"') if '"' in each.path else each.path.rsplit(".", 1)[-1]
            )
            assert name.split("[")[0] in lines[each.line - 1], (each, lines[each.line - 1])
        assert f"# line {each.line}" in text
        assert each.message


@each_file
def test_no_password_in_clear_comes_out(path: Path) -> None:
    result = convert(path)
    out = to_commented_yaml(result.documents, result.findings, "x") + json.dumps(
        [f.plain() for f in result.findings]
    )
    for secret in ("hunter2", "s3cr3t", "s3cret", "dfpw", "pa55", "abc123", ":secret@", ":guest@", 'dbz"'):
        assert secret not in out


@each_file
def test_every_value_of_the_input_is_mapped_or_reported(path: Path) -> None:
    """A value that changes either changes the documents, or a finding names it or something around it."""
    before, lost = convert(path), []
    for number, root in enumerate(read_located(path.read_text())):
        for leaf in root.leaves():
            if _is_reported(leaf, before) or leaf.name in SELECTS or leaf.value in ({}, [], None):
                continue
            changed = _converted_with(path, number, leaf)
            if changed is None:  # the changed value is refused: it was read
                continue
            different = changed.documents != before.documents
            reported = _is_reported(leaf, changed)
            if not different and not reported:
                lost.append(f"line {leaf.line}: {leaf.path} = {leaf.value!r}")
    assert not lost


def _is_reported(leaf: Node, result: Converted) -> bool:
    return any(each.covers and _around(each.path, leaf.path) for each in result.findings)


def _around(path: str, leaf: str) -> bool:
    return bool(path) and (leaf == path or leaf.startswith((f"{path}.", f"{path}[")))


def _converted_with(path: Path, number: int, leaf: Node) -> Converted | None:
    """The conversion of the file with another value in place of a leaf."""
    text = path.read_text()
    if path.suffix == ".properties":
        (root,) = read_located(text)
        changed = {**root.value, leaf.name: _other(leaf.value)}
        return convert(path, "\n".join(f"{name}={value}" for name, value in changed.items()))
    values = [json.loads(text)] if path.suffix == ".json" else list(yaml.safe_load_all(text))
    copied = copy.deepcopy(values)
    _set(copied[number], leaf, _other(leaf.value))
    dumped = "\n---\n".join(yaml.safe_dump(value, sort_keys=False) for value in copied)
    try:
        return convert(path, dumped)
    except Invalid:
        return None


def _set(value: Any, leaf: Node, to: Any) -> None:
    found = [place for place in _places(value, "") if place[2] == leaf.path]
    assert found, leaf.path
    holder, key, _ = found[0]
    holder[key] = to


def _places(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    from penstock.cli.convert.located import PLAIN_KEY

    if isinstance(value, dict):
        for name, part in value.items():
            step = name if PLAIN_KEY.fullmatch(name) else f'"{name}"'
            where = f"{path}.{step}" if path else step
            yield value, name, where
            yield from _places(part, where)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield value, i, f"{path}[{i}]"
            yield from _places(part, f"{path}[{i}]")


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 7
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return "false" if value.lower() == "true" else "true"
    if isinstance(value, str) and value.isdigit():
        return str(int(value) + 7)
    if isinstance(value, str):
        return f"{value}x" if not value.endswith('"') else value[:-1] + 'x"'
    return value


def test_every_system_has_five_configurations() -> None:
    assert {name: len(list((CORPUS / name).iterdir())) >= 5 for name in SYSTEMS} == dict.fromkeys(
        SYSTEMS, True
    )
