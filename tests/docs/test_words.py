"""Texts that people read have none of the phrases that docs/style.md replaces."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

ROOT = Path(__file__).parents[2]

BANNED = {
    r"\bmend(s|ed|ing)?\b": "fix, edit",
    r"\bin hand\b": "current",
    r"\bfor life\b": "can't be changed later",
    r"\bnobody\b": "no reader, no one",
    r"\bsomebody\b": "someone",
    r"\b(for|the last|at most) so (long|many)\b": "the number or the name of the setting",
    r"\bstretch(es)? of time\b": "time range, window",
    r"\btakes what is\b": "accepts events",
    r"\bas it is known\b": "leave it out",
    r"\bis called so\b": "no matches",
    r"\bthings? (is|are) (not right|wrong)\b": "fields need attention",
    r"\ball there is to know\b": "in detail",
    r"\bwhat (it promises|waits|runs|became of|becomes of|is paused|it remembers)\b": "a noun",
    r"\b(tell|told) its story\b|\bits story\b": "trace event",
    r"\bhold still\b": "pause",
    r"\btake back\b": "revert",
    r"\bends? (it )?in order\b": "shuts down cleanly",
    r"\bby itself\b": "automatically, on its own",
    r"\b(tried|tries|try) again by\b": "retried automatically",
    r"\bis tried again\b": "is retried",
    r"\bdo(es)? not answer\b": "is not responding",
    r"\bis no (position|offset|time|duration|regular expression|path|URL|name|key|JSON|text)\b": "is not a …",
    r"\bstands? (twice|in place|beside)\b": "duplicate, instead of",
    r"\b(begin|begins|begun|start|made|read) anew\b": "start over",
    r"\bin force again\b": "rolled back to",
    r"\bremembers? (other )?events\b": "keeps state",
    r"\b(go|goes) on where\b": "continues from",
    r"\bcome to (its|their) end\b|\bcomes to its end\b": "finish",
    r"\bcome to rest\b": "shut down",
    r"\blooked after\b": "maintained",
    r"\bfor ever\b": "unlimited",
    r"\b(at least|only those that are) so\b(?! (that|long as))": "the value",
    r"\bhow everything is\b": "the state",
}
"""Pattern → what to write instead."""

PATTERN = re.compile("|".join(f"(?:{each})" for each in BANNED), re.IGNORECASE)


def found_in(text: str) -> list[str]:
    """The banned phrases of a text, with what is around them."""
    flat = re.sub(r"\s+", " ", text)
    return [flat[max(0, m.start() - 40) : m.end() + 40] for m in PATTERN.finditer(flat)]


def pages() -> list[Path]:
    """Every Markdown page but the style guide, which lists the phrases, and the decisions."""
    docs = [page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts]
    own = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return sorted(page for page in [*docs, *own] if page.name != "style.md")


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a Python module, f-strings included, without docstrings and comments."""
    tree = ast.parse(path.read_text())
    skip: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skip.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skip.update(id(part) for part in node.values)
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            yield node.lineno, node.value


def texts(node: Any) -> Iterator[str]:
    """The texts of a JSON value."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for each in node.values():
            yield from texts(each)
    elif isinstance(node, list):
        for each in node:
            yield from texts(each)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    assert not found_in(page.read_text())


def test_strings_of_the_code() -> None:
    wrong = [
        (f"{path.relative_to(ROOT)}:{line}", found)
        for path in sorted((ROOT / "penstock").rglob("*.py"))
        for line, text in literals(path)
        for found in found_in(text)
    ]
    assert not wrong


def test_texts_of_the_web_app() -> None:
    wrong = []
    for path in sorted((ROOT / "web" / "src").rglob("*.ts*")):
        if ".test." in path.name or path.name == "schema.d.ts":
            continue
        code = re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", " ", path.read_text(), flags=re.DOTALL)
        wrong += [(str(path.relative_to(ROOT)), found) for found in found_in(code)]
    assert not wrong


def test_descriptions_of_the_api_and_of_components(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.api import openapi
    from penstock.specs.catalog import catalog

    openapi._print()
    described = list(texts(json.loads(capsys.readouterr().out)))
    for role in ("source", "sink", "processor"):
        for component in catalog(role).classes.values():
            described += texts(json.loads(json.dumps(component.model_json_schema())))
    assert len(described) > 1000
    assert not [found for text in described for found in found_in(text)]


def test_help_of_commands() -> None:
    from penstock.cli.main import app

    def helps(command: Any) -> Iterator[str]:
        yield command.help or ""
        for parameter in command.params:
            yield getattr(parameter, "help", None) or ""
        for name in getattr(command, "commands", {}):
            yield from helps(command.commands[name])

    found = list(helps(typer.main.get_command(app)))
    assert len(found) > 50
    assert not [each for text in found for each in found_in(text)]


def test_the_test_finds_what_it_looks_for() -> None:
    assert found_in("Open it and mend what is marked")
    assert not found_in(
        "Open it, fix the highlighted errors, then resume. Recommend, amend, in order of time."
    )
