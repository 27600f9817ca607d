"""The `explode` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.sql.names import Path, case_sensitive, find, leaf_type, paths, quote, same
from penstock.sql.problems import told, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


class ExplodeProcessor(RowProcessor):
    """Emits one event for each element of an array or each entry of a map.

    The other columns are repeated. The element stands in the place of the array, under its name or under the
    one that `into` gives; the entries of a map become two columns, `key` and `value`. An array inside a
    struct (`order.items`) stays where it is and its element becomes the last column, called `items`. An event
    whose array is NULL or empty is left out, unless `keep_empty` is set.
    """

    example: ClassVar[str] = """\
type: explode
field: items
into: item
position: line
"""

    type: Literal["explode"] = "explode"
    field: str = Field(
        min_length=1, description="Array or map to explode. A dot selects a field of a struct: `order.items`."
    )
    into: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the column for an element. Default: the name of the array.",
    )
    key: str = Field(default="key", min_length=1, description="For a map: name of the column of keys.")
    value: str = Field(default="value", min_length=1, description="For a map: name of the column of values.")
    position: str | None = Field(
        default=None, min_length=1, description="Name of a column for the index of the element, from 0."
    )
    keep_empty: bool = Field(
        default=False, description="Whether to keep an event without elements, with NULL as the element."
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """An event for each element."""
        from pyspark.sql import functions as f

        sensitive = case_sensitive(df)
        path = find(df.schema, self.field, sensitive)
        if path is None:
            missing = unknown_column(self.field, list(paths(df.schema)))
            raise Invalid(missing.model_copy(update={"path": "field"}))
        made = self._made(path, leaf_type(df.schema, path))
        columns: list[Column] = []
        for name in df.columns:
            columns += [self._generated(path, made)] if path == (name,) else [f.col(quote(name))]
        if len(path) > 1:
            columns.append(self._generated(path, made))
        kept = [name for name in df.columns if path != (name,)]
        if problems := list(_clashes(kept, made, sensitive)):
            raise Invalid(*problems)
        with told("field", df.columns):
            return df.select(*columns)

    def _made(self, path: Path, kind: DataType) -> dict[str, str]:
        """The columns that are made: the field that names each, and its name."""
        from pyspark.sql.types import ArrayType, MapType

        place = {"position": self.position} if self.position else {}
        if isinstance(kind, MapType):
            if self.into is not None:
                message = "'into' names the element of an array, but this is a map"
                hint = "use 'key' and 'value'"
                raise Invalid(Problem(code="invalid_value", message=message, path="into", hint=hint))
            return {**place, "key": self.key, "value": self.value}
        if isinstance(kind, ArrayType):
            return {**place, "into": self.into or path[-1]}
        message = f"column '{self.field}' is {kind.simpleString()}, not an array or a map"
        raise Invalid(Problem(code="sql_type", message=message, path="field"))

    def _generated(self, path: Path, made: dict[str, str]) -> Column:
        from pyspark.sql import functions as f

        array = f.col(quote(*path))
        if self.position:
            rows = f.posexplode_outer(array) if self.keep_empty else f.posexplode(array)
        else:
            rows = f.explode_outer(array) if self.keep_empty else f.explode(array)
        return rows.alias(*made.values())


def _clashes(kept: list[str], made: dict[str, str], sensitive: bool) -> list[Problem]:
    """A problem for each new column whose name is taken."""
    taken = {same(name, sensitive) for name in kept}
    problems = []
    for field, name in made.items():
        if same(name, sensitive) in taken:
            message = f"there would be two columns '{name}'"
            problems.append(
                Problem(code="duplicate_column", message=message, path=field, hint="choose another name")
            )
        taken.add(same(name, sensitive))
    return problems
