"""The `drop_fields` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.sql.names import Path, case_sensitive, find, leaf_type, paths, quote
from penstock.sql.problems import told, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class DropFieldsProcessor(RowProcessor):
    """Removes columns, or fields inside structs.

    At least one column must remain, and at least one field in a struct that remains.
    """

    example: ClassVar[str] = """\
type: drop_fields
fields: [password, address.street]
"""

    type: Literal["drop_fields"] = "drop_fields"
    fields: list[str] = Field(
        min_length=1, description="Fields to remove. A dot selects a field of a struct: `address.street`."
    )

    def apply(self, df: DataFrame) -> DataFrame:
        """The events without the fields."""
        sensitive = case_sensitive(df)
        dropped: dict[Path, str] = {}
        problems = []
        for i, text in enumerate(self.fields):
            path = find(df.schema, text, sensitive)
            if path is None:
                missing = unknown_column(text, list(paths(df.schema)))
                problems.append(missing.model_copy(update={"path": f"fields[{i}]"}))
            else:
                dropped.setdefault(path, f"fields[{i}]")
        problems += _emptied(df.schema, dropped)
        if problems:
            raise Invalid(*problems)
        with told("fields", df.columns):
            return df.select(*(_without(name, dropped) for name in df.columns if (name,) not in dropped))


def _emptied(schema: StructType, dropped: dict[Path, str]) -> list[Problem]:
    """A problem for the event, and for each of its structs, if no field would remain."""
    from pyspark.sql.types import StructType

    problems = []
    for path, field in {path[:-1]: field for path, field in dropped.items()}.items():
        struct = leaf_type(schema, path)
        gone = any(path[:depth] in dropped for depth in range(1, len(path) + 1))
        if isinstance(struct, StructType) and not gone and all((*path, n) in dropped for n in struct.names):
            what = f"struct '{'.'.join(path)}'" if path else "the event"
            hint = f"remove '{'.'.join(path)}' itself" if path else "keep at least one column"
            message = f"no fields of {what} would remain"
            problems.append(Problem(code="empty_event", message=message, path=field, hint=hint))
    return problems


def _without(name: str, dropped: dict[Path, str]) -> Column:
    from pyspark.sql import functions as f

    inside = [quote(*path[1:]) for path in dropped if path[0] == name]
    # Spark removes fields one after the other: a field inside a removed struct would not be found.
    inside = [p for p in inside if not any(p.startswith(q + ".") for q in inside)]
    column = f.col(quote(name))
    return column.dropFields(*inside).alias(name) if inside else column
