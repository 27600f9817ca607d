"""The kinds of documents, as written on the command line."""

from __future__ import annotations

from penstock.cli.output import Usage
from penstock.errors import Problem, did_you_mean

PLURALS = {
    "Secret": "secrets",
    "Stream": "streams",
    "Source": "sources",
    "Task": "tasks",
    "Sink": "sinks",
    "Pipeline": "pipelines",
}
"""Each kind and its path in the API, in the order of references: a kind comes after those it refers to."""

RUNNABLE = ("Source", "Task", "Sink", "Pipeline")
"""Kinds that can be started, paused and stopped."""


def kind_of(word: str) -> str:
    """The kind that a word names: the singular, the plural or a prefix such as `p`."""
    found = [kind for kind, plural in PLURALS.items() if word and plural.startswith(word.lower())]
    if len(found) == 1:
        return found[0]
    what = f"'{word}' could be {' or '.join(found)}" if found else f"there is no kind '{word}'"
    hint = f"use {' or '.join(PLURALS[k] for k in found)}" if found else did_you_mean(word, PLURALS.values())
    raise Usage(Problem(code="unknown_kind", message=what, hint=hint))


def target_of(text: str) -> tuple[str, str]:
    """Kind and name of the target of an action: `task/NAME`, or just the name of a pipeline."""
    word, slash, name = text.partition("/")
    if not slash:
        return "Pipeline", text
    kind = kind_of(word)
    if kind not in RUNNABLE:
        message = f"a {kind.lower()} does not run"
        hint = f"one of: {', '.join(f'{each.lower()}/NAME' for each in RUNNABLE)}"
        raise Usage(Problem(code="not_runnable", message=message, hint=hint))
    return kind, name
