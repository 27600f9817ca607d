"""`${NAME}` and `${secret:NAME}` in documents: resolved where the pipeline runs, never stored or shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import Invalid, Problem
from penstock.specs.templates import as_literal

_VARIABLE = re.compile(r"\$(?:(\$)|)\{(?:secret:([^}]+)|([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}")


Allows = Callable[[str], bool]
"""Returns whether a document may use a variable."""

Reads = Callable[[str], str]
"""Returns the value of a secret; `Invalid` if there is none."""


def no_secrets(name: str) -> str:
    """Reports every secret as unknown, where there are no secrets."""
    message = f"there is no secret '{name}'"
    raise Invalid(Problem(code="unknown_reference", message=message, hint="create a Secret of this name"))


def resolve(
    value: Any,
    environment: Mapping[str, str],
    allows: Allows,
    path: str = "",
    reads: Reads = no_secrets,
    templates: Callable[[str], bool] = lambda _: False,
) -> tuple[Any, list[Problem]]:
    """`value` with its variables replaced, and a problem for each variable that is not set or not allowed.

    `${NAME:-text}` falls back to `text`; `$${NAME}` is the text `${NAME}`. In `templates`, braces in the
    value of a secret are escaped.
    """
    problems: list[Problem] = []

    def replace(match: re.Match[str], at: str) -> str:
        escaped, secret, name, fallback = match.groups()
        if escaped:
            return match.group()[1:]
        if secret is not None:
            try:
                return as_literal(reads(secret)) if templates(at) else reads(secret)
            except Invalid as error:
                problems.extend(each.model_copy(update={"path": at}) for each in error.problems)
                return match.group()
        if not allows(name):
            problems.append(_not_allowed(name, at))
            return match.group()
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

    return _walk(value, path, lambda text, at: _VARIABLE.sub(lambda m: replace(m, at), text)), problems


def refused(value: Any, allows: Allows, path: str = "") -> list[Problem]:
    """A problem for each variable in `value` that a document may not use."""
    problems: list[Problem] = []

    def look(text: str, at: str) -> str:
        for escaped, secret, name, _ in _VARIABLE.findall(text):
            if not escaped and not secret and not allows(name):
                problems.append(_not_allowed(name, at))
        return text

    _walk(value, path, look)
    return problems


def secrets_in(value: Any, path: str = "") -> list[tuple[str, str]]:
    """The names of the secrets that `value` uses, each with its path."""
    found: list[tuple[str, str]] = []

    def look(text: str, at: str) -> str:
        for escaped, secret, _, _ in _VARIABLE.findall(text):
            if secret and not escaped:
                found.append((secret, at))
        return text

    _walk(value, path, look)
    return found


def _not_allowed(name: str, at: str) -> Problem:
    return Problem(
        code="variable_not_allowed",
        message=f"documents may not use the variable {name}",
        path=at,
        hint=f"name it PENSTOCK_VAR_{name}, ask an administrator to add {name} to policy.variables,"
        f" or write $${{{name}}} for the text itself",
    )


def _walk(node: Any, at: str, change: Callable[[str, str], str]) -> Any:
    """A tree with its texts changed; `change` gets a text and its path."""
    if isinstance(node, str):
        return change(node, at)
    if isinstance(node, Mapping):
        return {key: _walk(child, f"{at}.{key}" if at else str(key), change) for key, child in node.items()}
    if isinstance(node, list):
        return [_walk(child, f"{at}[{i}]", change) for i, child in enumerate(node)]
    return node
