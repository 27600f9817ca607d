"""The target of an event, such as a topic: a fixed name, or text with `{column}` in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.redaction import veiled
from penstock.specs import templates
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column


def columns_of(template: str) -> list[str]:
    """The columns in a template; raises ValueError if it is malformed."""
    return list(templates.columns_of(template))


def fixed_text(template: str) -> str | None:
    """The text of a template without columns; None if it has columns."""
    return None if columns_of(template) else templates.filled(template, {})


def text_of(
    template: str,
    escape: Callable[[Column], Column] = lambda value: value,
    literal: Callable[[str], str] = veiled,
) -> Column:
    """The text of a template for each event, with each value escaped; NULL if one of its columns is NULL.

    Secrets in the template are veiled, unless `literal` is another function; `unveiled` restores them.
    """
    from pyspark.sql import functions as f

    parts: list[Column] = []
    for text, name in templates.parts_of(template):
        parts += [f.lit(literal(text))] if text else []
        parts += [escape(f.col(quote(name)).cast("string"))] if name else []
    return f.concat(*parts)
