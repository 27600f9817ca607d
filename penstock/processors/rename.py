"""The `rename` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.sql.names import Path, case_sensitive, find, paths, quote, same
from penstock.sql.problems import told, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


class RenameProcessor(RowProcessor):
    """Renames columns, or fields inside structs.

    Values, types and order stay. All names are changed at once, so two columns can swap theirs. The new
    name is that of the field alone: `address.zip: postcode` makes `address.postcode`.
    """

    example: ClassVar[str] = """\
type: rename
fields:
  ts: time
  address.zip: postcode
"""

    type: Literal["rename"] = "rename"
    fields: dict[str, str] = Field(
        min_length=1,
        description="Old name → new name. A dot in the old name selects a field of a struct.",
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """The events with the new names."""
        sensitive = case_sensitive(df)
        new: dict[Path, tuple[str, str]] = {}
        problems = []
        for old, name in self.fields.items():
            path = find(df.schema, old, sensitive)
            if path is None:
                missing = unknown_column(old, list(paths(df.schema)))
                problems.append(missing.model_copy(update={"path": f"fields.{old}"}))
            elif path in new:
                problems.append(_clash(old, f"'{old}' and '{new[path][0]}' are the same column"))
            elif not name:
                problems.append(Problem(code="empty_name", message="a name is empty", path=f"fields.{old}"))
            else:
                new[path] = (old, name)
        schema = _renamed(df.schema, (), new, sensitive, problems)
        if problems:
            raise Invalid(*problems)
        with told("fields", df.columns):
            return df.select(*(_column((a.name,), a, b) for a, b in zip(df.schema, schema, strict=True)))


def _renamed(
    struct: StructType, at: Path, new: dict[Path, tuple[str, str]], sensitive: bool, problems: list[Problem]
) -> StructType:
    """The struct with its new names; what would have the same name is added to `problems`."""
    from pyspark.sql.types import StructField, StructType

    fields: list[StructField] = []
    taken: dict[str, tuple[str, str]] = {}
    for field in struct.fields:
        path = (*at, field.name)
        old, name = new.get(path, ("", field.name))
        first_old, first = taken.setdefault(same(name, sensitive), (old, field.name))
        if first != field.name and (old or first_old):
            message = f"'{first}' and '{field.name}' would both be named '{name}'"
            problems.append(_clash(old or first_old, message))
        kind: DataType = field.dataType
        if isinstance(kind, StructType):
            kind = _renamed(kind, path, new, sensitive, problems)
        fields.append(StructField(name, kind, field.nullable, field.metadata))
    return StructType(fields)


def _clash(old: str, message: str) -> Problem:
    return Problem(code="duplicate_column", message=message, path=f"fields.{old}")


def _column(path: Path, old: StructField, new: StructField) -> Column:
    """The column or field at `path` under its new name, rebuilt if names inside it change.

    A cast between structs would say the same in one word, but Spark refuses it for a VARIANT NOT NULL.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    column = f.col(quote(*path))
    if old.dataType != new.dataType:
        assert isinstance(old.dataType, StructType)
        assert isinstance(new.dataType, StructType)
        inner = zip(old.dataType, new.dataType, strict=True)
        struct = f.struct(*(_column((*path, a.name), a, b) for a, b in inner))
        column = f.when(column.isNotNull(), struct) if old.nullable else struct
    return column.alias(new.name, metadata=new.metadata) if new.metadata else column.alias(new.name)
