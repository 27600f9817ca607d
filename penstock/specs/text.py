"""Documents as text: YAML or JSON, one or many in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import Problem, PenstockError

SUFFIXES = (".yaml", ".yml", ".json")


class Unreadable(PenstockError):
    """Text that is neither YAML nor JSON."""

    status = 400


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML as people mean it: a key given twice is a mistake, and dates stay text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_all(text: str | bytes) -> list[Any]:
    """Every document in a text; a bundle or a list counts as the documents in it."""
    try:
        parts = list(yaml.load_all(text, Loader=_Loader))  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Unreadable(_syntax(error)) from None
    documents: list[Any] = []
    for part in parts:
        if isinstance(part, dict) and part.get("kind") == "Bundle" and isinstance(part.get("documents"), list):
            documents += part["documents"]
        elif isinstance(part, list):
            documents += part
        elif part is not None:
            documents.append(part)
    return documents


def read_one(text: str | bytes) -> Any:
    """The one value in a text, as it stands."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Unreadable(_syntax(error)) from None


def read_path(path: Path) -> list[Any]:
    """Every document in a file, or in the files of a directory in the order of their names."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        return [document for file in files for document in read_path(file)]
    try:
        return read_all(path.read_bytes())
    except OSError as error:
        raise Unreadable(
            Problem(code="unreadable_file", message=f"{path}: {error.strerror}", hint="check the path")
        ) from None
    except Unreadable as error:
        error.problems[0].message = f"{path}: {error.problems[0].message}"
        raise


def to_yaml(value: Any) -> str:
    """A value as YAML, keys in their own order."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)


def to_json(value: Any) -> str:
    """A value as JSON, for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _syntax(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return Problem(
        code="not_yaml", message=f"neither YAML nor JSON{where}: {what}", hint="check indentation and quotes"
    )
