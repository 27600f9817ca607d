from __future__ import annotations

from pathlib import Path

import yaml

from penstock.cli.reference import DIRECTORY, pages
from penstock.specs.catalog import ROLES, catalog
from penstock.specs.documents import KINDS

ROOT = Path(__file__).parents[2]


def test_the_committed_pages_are_those_of_the_code() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / DIRECTORY).glob("*.md")}
    made = pages()
    changed = [name for name in made.keys() | committed.keys() if made.get(name) != committed.get(name)]
    assert not changed, "run `make docs` and commit docs/reference"


def test_everything_has_its_place() -> None:
    made = pages()
    for kind in KINDS:
        assert f"| `kind` | `{kind}` | **required** |" in made[f"{kind.lower()}.md"]
    for role in ROLES:
        page = made["processors.md" if role == "processor" else "connectors.md"]
        for name, component in catalog(role).classes.items():
            assert f"# {name}\n" in page
            assert yaml.safe_load(component.example)["type"] == name
    assert "`spec.sinks[].required`" in made["pipeline.md"]
    assert "| `--name NAME` |" in made["cli.md"]
