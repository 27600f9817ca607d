"""The `flatten` step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.sql.names import Path, case_sensitive, find, quote, same
from penstock.sql.problems import told, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField


class FlattenProcessor(RowProcessor):
    """Turns the fields of structs into top-level columns.

    `{"user": {"id": 1}}` becomes `user_id`. Where a struct is NULL, all of its columns are. Maps, and with
    `arrays: keep` arrays too, stay as they are; a struct without fields stays as well. Two columns that
    would get the same name are an error.
    """

    example: ClassVar[str] = """\
type: flatten
separator: "."
max_depth: 2
"""

    type: Literal["flatten"] = "flatten"
    separator: str = Field(default="_", description="Separator between the parts of a new name.")
    fields: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Columns to flatten; others are kept unchanged. Default: all columns.",
    )
    max_depth: int | None = Field(
        default=None, ge=1, description="Maximum number of struct levels to flatten. Default: all."
    )
    arrays: Literal["keep", "json"] = Field(
        default="keep", description="Whether to keep arrays or convert them to JSON text."
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """The events with flat columns."""
        sensitive = case_sensitive(df)
        chosen = self._chosen(df, sensitive)
        columns: list[Column] = []
        taken: dict[str, Path] = {}
        problems = []
        for field in df.schema.fields:
            opened = self._leaves((field.name,), field) if field.name in chosen else [((field.name,), field)]
            for path, leaf in opened:
                name = self.separator.join(path)
                first = taken.setdefault(same(name, sensitive), path)
                if first is not path:
                    problems.append(_clash(first, path, name))
                columns.append(self._column(path, leaf, path[0] in chosen).alias(name))
        if problems:
            raise Invalid(*problems)
        with told("fields", df.columns):
            return df.select(*columns)

    def _chosen(self, df: DataFrame, sensitive: bool) -> set[str]:
        from pyspark.sql.types import ArrayType, StructType

        if self.fields is None:
            return set(df.columns)
        chosen = set()
        problems = []
        for i, text in enumerate(self.fields):
            path = find(df.schema, text, sensitive)
            if path is None or len(path) > 1:
                missing = unknown_column(text, df.columns)
                problems.append(missing.model_copy(update={"path": f"fields[{i}]"}))
                continue
            kind = df.schema[path[0]].dataType
            if not isinstance(kind, (StructType, ArrayType) if self.arrays == "json" else StructType):
                message = f"column '{text}' is {kind.simpleString()}, not a struct"
                problems.append(Problem(code="sql_type", message=message, path=f"fields[{i}]"))
            chosen.add(path[0])
        if problems:
            raise Invalid(*problems)
        return chosen

    def _leaves(self, path: Path, field: StructField) -> Iterator[tuple[Path, StructField]]:
        from pyspark.sql.types import StructType

        kind = field.dataType
        deep = self.max_depth is not None and len(path) > self.max_depth
        if deep or not isinstance(kind, StructType) or not kind.fields:
            yield path, field
            return
        for inner in kind.fields:
            yield from self._leaves((*path, inner.name), inner)

    def _column(self, path: Path, leaf: StructField, chosen: bool) -> Column:
        from pyspark.sql import functions as f
        from pyspark.sql.types import ArrayType

        column = f.col(quote(*path))
        as_text = chosen and self.arrays == "json" and isinstance(leaf.dataType, ArrayType)
        return f.to_json(column) if as_text else column


def _clash(first: Path, second: Path, name: str) -> Problem:
    both = f"'{'.'.join(first)}' and '{'.'.join(second)}'"
    return Problem(
        code="duplicate_column",
        message=f"{both} would both be named '{name}'",
        path="separator",
        hint="choose another separator, or rename one of them in an earlier step",
    )
