"""Columns by name: quoting, and paths into structs.

In a path, a dot leads into a struct. A column with dots in its own name takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

Path = tuple[str, ...]


def quote(*path: str) -> str:
    """The quoted reference to a column or one of its fields, for names with any characters."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def case_sensitive(df: DataFrame) -> bool:
    """Whether names are case-sensitive in this session."""
    return df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"


def same(name: str, sensitive: bool) -> str:
    """The normalized form of a name: equal for names of the same column."""
    return name if sensitive else name.lower()


def find(struct: StructType, text: str, sensitive: bool) -> Path | None:
    """The path that `text` refers to in a struct, or None."""
    from pyspark.sql.types import StructType

    field = _field(struct, text, sensitive)
    if field is not None:
        return (field.name,)
    for cut in reversed([i for i, c in enumerate(text) if c == "."]):
        field = _field(struct, text[:cut], sensitive)
        if field is not None and isinstance(field.dataType, StructType):
            rest = find(field.dataType, text[cut + 1 :], sensitive)
            if rest is not None:
                return (field.name, *rest)
    return None


def _field(struct: StructType, name: str, sensitive: bool) -> StructField | None:
    exact = next((f for f in struct.fields if f.name == name), None)
    if exact is not None or sensitive:
        return exact
    return next((f for f in struct.fields if f.name.lower() == name.lower()), None)


def paths(struct: StructType, prefix: str = "") -> Iterator[str]:
    """All columns and the fields of their structs, as paths."""
    from pyspark.sql.types import StructType

    for field in struct.fields:
        yield prefix + field.name
        if isinstance(field.dataType, StructType):
            yield from paths(field.dataType, f"{prefix}{field.name}.")


def leaf_type(struct: StructType, path: Path) -> DataType:
    """The type at the end of a path returned by `find`."""
    from pyspark.sql.types import StructType

    kind: DataType = struct
    for name in path:
        assert isinstance(kind, StructType)
        kind = kind[name].dataType
    return kind
