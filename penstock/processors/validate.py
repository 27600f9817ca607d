"""The `validate` step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.errors import Invalid, Problem
from penstock.frames.columns import found, index_of
from penstock.frames.faults import Fault
from penstock.frames.hidden import EVENT, NOTE, visible
from penstock.frames.noting import noted, row_of, shown, shown_schema
from penstock.processors.base import FrameProcessor, Stage
from penstock.processors.support import json_schemas
from penstock.processors.support.files import read_file
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with
from penstock.specs.reach import Reach
from penstock.sql.frames import condition
from penstock.sql.names import quote
from penstock.sql.tries import tried

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

FAILED = "$failed"
"""The temporary column with the checks that an event has failed."""


class Expectation(Spec):
    """A condition that events must satisfy."""

    name: str = Field(min_length=1, description="Name of the condition, shown when an event fails it.")
    where: str = Field(min_length=1, description="A condition in Spark SQL over the event's columns.")


class ValidateProcessor(FrameProcessor):
    """Validates events with conditions or with a JSON Schema.

    An event fails a condition that is false, NULL or raises an error. The JSON Schema applies to the event as
    one JSON object, without columns that are NULL; with `field`, it applies to the JSON in this column, text
    or a struct. References to other documents are not followed.

    `on_fail` determines what happens to an event that fails: it goes to the dead letters with the names of
    the conditions or the places in the JSON (`dead_letter`), is dropped and counted (`drop`), fails the
    pipeline (`fail`), or continues with its failures in the column that `tag` names, which is empty for
    events that pass (`tag`).
    """

    example: ClassVar[str] = """\
type: validate
expectations:
  - {name: positive amount, where: amount > 0}
  - {name: known country, where: "country IN ('DE', 'FR')"}
on_fail: tag
"""

    type: Literal["validate"] = "validate"
    expectations: list[Expectation] | None = Field(
        default=None, min_length=1, description="Conditions that each event must satisfy."
    )
    json_schema: Annotated[dict[str, Any] | str | None, Reach("path")] = Field(
        default=None, description="A JSON Schema, or the path of a file that has it."
    )
    field: str | None = Field(
        default=None, min_length=1, description="With `json_schema`: the column to check. Default: the event."
    )
    on_fail: Literal["dead_letter", "drop", "fail", "tag"] = Field(
        default="dead_letter", description="What happens to an event that fails."
    )
    tag: str = Field(
        default="_failed",
        min_length=1,
        description="Name of the column of failures.",
        json_schema_extra=only_with(on_fail=["tag"]),
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.expectations is None) == (self.json_schema is None):
            raise ValueError("set either 'expectations' or 'json_schema'")
        if self.field is not None and self.json_schema is None:
            raise ValueError("'field' can only be used with 'json_schema'")
        names = [each.name for each in self.expectations or ()]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two expectations have the name '{twice}'")
        return self

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The valid events, or all events with `on_fail: tag`."""
        from pyspark.sql import functions as f

        if self.on_fail == "tag" and index_of(visible(df.columns), self.tag) >= 0:
            message = f"the column '{self.tag}' already exists"
            raise Invalid(Problem(code="duplicate_column", message=message, path="tag"))
        failures = self._violations(df) if self.expectations is None else self._unmet(df)
        judged = df.withColumn(FAILED, failures)
        failed = f.col(quote(FAILED))
        event, columns = f.col(quote(EVENT)), [f.col(quote(name)) for name in visible(df.columns)]
        if self.on_fail == "tag":
            return judged.select(*columns, failed.alias(self.tag), event)
        passes = f.size(failed) == 0
        if self.on_fail == "drop":
            return judged.filter(passes).select(*columns, event)
        if self.on_fail == "fail":
            return judged.filter(f.when(passes, True).otherwise(self._raised(stage))).select(*columns, event)
        note = f.when(~passes, noted(df, stage.step, self._code, self._message))
        return judged.select(*columns, event, note.alias(NOTE))

    @property
    def _code(self) -> str:
        return "expectation_failed" if self.expectations is not None else "schema_violated"

    @property
    def _message(self) -> Column:
        from pyspark.sql import functions as f

        names = f.concat_ws("; ", f.col(quote(FAILED)))
        return f.concat(f.lit("failed: "), names) if self.expectations is not None else names

    def _raised(self, stage: Stage) -> Column:
        """An error in the format of a fault, from which the engine gets its code."""
        from pyspark.sql import functions as f

        name = f"{Fault.__module__}.{Fault.__qualname__}"
        begin = f.lit(f"{name}: [{self._code}] step '{stage.step}', ")
        return f.raise_error(f.concat(begin, self._message, f.lit("\n"))).cast("boolean")

    def _unmet(self, df: DataFrame) -> Column:
        """The names of the conditions that an event does not satisfy."""
        from pyspark.sql import functions as f

        names, problems = [], []
        for i, each in enumerate(self.expectations or ()):
            try:
                holds = tried(
                    df, condition(shown(df), each.where, field=f"expectations[{i}].where").alias("is")
                )
                names.append(f.when(~f.coalesce(holds["is"], f.lit(False)), f.lit(each.name)))
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        return f.array_compact(f.array(*names))

    def _violations(self, df: DataFrame) -> Column:
        """The violations in the JSON of an event."""
        import pyarrow as pa
        from pyspark.sql.pandas.functions import arrow_udf

        schema = self._schema()

        def violations(texts: pa.Array) -> pa.Array:
            return json_schemas.violations(schema, texts)

        # Spark infers the kind of function from the types, which it does not find in this module.
        violations.__annotations__ = {"texts": pa.Array, "return": pa.Array}
        # Otherwise Spark would evaluate it again for each use of its result.
        untyped: Any = arrow_udf
        check: Any = untyped(violations, returnType="array<string>").asNondeterministic()
        made: Column = check(self._json(df))
        return made

    def _json(self, df: DataFrame) -> Column:
        from pyspark.sql import functions as f

        if self.field is None:
            return row_of(df)
        field = found(shown_schema(df), self.field, "field")
        column, kind = f.col(quote(field.name)), field.dataType.typeName()
        if kind in ("string", "binary"):
            return column.cast("string")
        if kind in ("struct", "map", "array", "variant"):
            return f.to_json(column)
        message = f"column '{field.name}' is {field.dataType.simpleString()}, not JSON"
        raise Invalid(Problem(code="sql_type", message=message, path="field"))

    def _schema(self) -> str:
        if isinstance(self.json_schema, str):
            text = read_file(self.json_schema, "json_schema").decode(errors="replace")
        else:
            text = json.dumps(self.json_schema)
        json_schemas.check(text, "json_schema")
        return text
