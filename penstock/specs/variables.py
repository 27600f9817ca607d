"""`${NAME}` in a document: looked up where the pipeline runs, never stored or shown in clear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import Problem

_VARIABLE = re.compile(r"\$(?:(\$)|)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def resolve(value: Any, environment: Mapping[str, str], path: str = "") -> tuple[Any, list[Problem]]:
    """`value` with its variables replaced, and a problem for each that is not set.

    `${NAME:-text}` falls back to `text`; `$${NAME}` stands for itself.
    """
    problems: list[Problem] = []

    def replace(match: re.Match[str], at: str) -> str:
        escaped, name, fallback = match.groups()
        if escaped:
            return match.group()[1:]
        found = environment.get(name, fallback)
        if found is None:
            problems.append(
                Problem(
                    code="unset_variable",
                    message=f"the environment variable {name} is not set where the pipeline runs",
                    path=at,
                    hint=f"export {name}, or use ${{{name}:-default}}",
                )
            )
            return match.group()
        return found

    def walk(node: Any, at: str) -> Any:
        if isinstance(node, str):
            return _VARIABLE.sub(lambda m: replace(m, at), node)
        if isinstance(node, Mapping):
            return {key: walk(child, f"{at}.{key}" if at else str(key)) for key, child in node.items()}
        if isinstance(node, list):
            return [walk(child, f"{at}[{i}]") for i, child in enumerate(node)]
        return node

    return walk(value, path), problems
