"""Columns whose values identify events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import Invalid, Problem
from penstock.frames.noting import shown_schema
from penstock.sql.names import case_sensitive, find, leaf_type, paths, quote
from penstock.sql.problems import unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def key_columns(df: DataFrame, keys: Sequence[str], *, field: str = "keys") -> dict[str, Column]:
    """The columns of `keys`, by the last name in each path.

    Raises `Invalid` at `field` for a key that is missing, duplicate or cannot be compared.
    """
    from pyspark.sql import functions as f

    schema, sensitive = shown_schema(df), case_sensitive(df)
    found: dict[str, Column] = {}
    problems = []
    for i, key in enumerate(keys):
        path = find(schema, key, sensitive)
        if path is None:
            problem = unknown_column(key, list(paths(schema)))
        elif path[-1] in found:
            message = f"there are two keys '{path[-1]}'"
            problem = Problem(code="duplicate_column", message=message)
        elif not comparable(leaf_type(schema, path)):
            kind = leaf_type(schema, path).simpleString()
            problem = Problem(code="sql_type", message=f"column '{key}' is {kind}, which can't be compared")
        else:
            found[path[-1]] = f.col(quote(*path))
            continue
        problems.append(problem.model_copy(update={"path": f"{field}[{i}]"}))
    if problems:
        raise Invalid(*problems)
    return found


def comparable(kind: DataType) -> bool:
    """Whether Spark can group, join and hash by values of a type: not if it contains a map or a variant."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return all(comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return comparable(kind.elementType)
    return not isinstance(kind, MapType | VariantType)
