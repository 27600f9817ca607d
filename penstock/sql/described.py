"""The functions that user SQL may call, with Spark's descriptions."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from penstock.spark import plans
from penstock.sql import functions

WORD = re.compile(r"[a-z_][a-z0-9_]*")
EXAMPLE = re.compile(r"^\s*> (?P<query>.+?);?\s*$", re.MULTILINE)


class FunctionInfo(BaseModel):
    """A function of Spark SQL."""

    name: str
    usage: str = Field(description="How it is called, and what it does.")
    group: str | None = Field(description="What it belongs to, such as `math` or `datetime`.")
    example: str | None = Field(description="A query that calls it.")


@cache
def described(jvm: Any) -> tuple[FunctionInfo, ...]:
    """All permitted functions whose name is a word, sorted by name. Operators are omitted."""
    analysis = getattr(jvm, f"{plans.CATALYST}analysis")
    allowed = functions.builtin(jvm) - functions.DENIED.keys()
    found = {
        name: _described(jvm, registry.builtin(), name)
        for registry, names in (
            (analysis.TableFunctionRegistry, functions.TABLE_FUNCTIONS),
            (analysis.FunctionRegistry, allowed),
        )
        for name in names
        if WORD.fullmatch(name)
    }
    return tuple(found[name] for name in sorted(found))


def _described(jvm: Any, registry: Any, name: str) -> FunctionInfo:
    identifier = getattr(jvm, f"{plans.CATALYST}FunctionIdentifier")
    info = registry.lookupFunction(identifier(name)).get()
    example = EXAMPLE.search(info.getExamples())
    return FunctionInfo(
        name=name,
        usage=" ".join(info.getUsage().split()),
        group=info.getGroup().removesuffix("_funcs") or None,
        example=example["query"] if example else None,
    )
