"""The `sample` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.errors import Invalid
from penstock.frames.hidden import EVENT, visible
from penstock.frames.noting import shown_schema
from penstock.processors.base import FrameProcessor, Stage
from penstock.processors.support.keys import comparable
from penstock.sql.names import case_sensitive, find, leaf_type, paths, quote
from penstock.sql.problems import unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

BITS = 53
"""The number of bits of a hash that are used: as many as the mantissa of a float has."""


class SampleProcessor(FrameProcessor):
    """Keeps a part of the events: a fraction, or every Nth.

    The choice depends only on the events, so a repeated batch, and a replay, select the same events. With
    `rate` it depends on a hash: of the whole event, of its key in the stream, or of the columns in `by`;
    events with the same values are then kept or dropped together. With `every` it depends on the offset in
    the stream; events of a source without offsets are selected by their hash, one of N on average.
    """

    example: ClassVar[str] = """\
type: sample
rate: 0.1
by: [customer]
"""

    type: Literal["sample"] = "sample"
    rate: float | None = Field(default=None, gt=0, le=1, description="Fraction of events to keep.")
    every: int | None = Field(default=None, ge=1, description="Instead of `rate`: keep every Nth event.")
    by: Literal["event", "key"] | list[str] = Field(
        default="event",
        description="With `rate`: basis of the decision: the whole event, its key in the stream (the whole "
        "event if it has no key), or a list of columns.",
    )
    seed: int = Field(default=0, description="Seed; another number selects other events.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.rate is None) == (self.every is None):
            raise ValueError("a sample needs either 'rate' or 'every'")
        if self.every is not None and "by" in self.model_fields_set:
            raise ValueError("'by' can't be used with 'every'")
        if self.by == []:
            raise ValueError("'by' has no columns")
        return self

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The selected events."""
        from pyspark.sql import functions as f

        number = f.shiftrightunsigned(self._hash(df), 64 - BITS)
        if self.rate is not None:
            return df.filter(number < f.lit(round(self.rate * 2**BITS)))
        place = f.coalesce(f.col(quote(EVENT, "offset")) + f.lit(self.seed), number)
        return df.filter(f.pmod(place, f.lit(self.every)) == 0)

    def _hash(self, df: DataFrame) -> Column:
        from pyspark.sql import functions as f

        whole = [_hashable(name, kind=df.schema[name].dataType) for name in visible(df.columns)]
        seed = f.lit(self.seed)
        if isinstance(self.by, list):
            return f.xxhash64(seed, *self._chosen(df, self.by))
        event = f.xxhash64(seed, *whole)
        if self.by == "event":
            return event
        key = f.col(quote(EVENT, "key"))
        return f.when(key.isNotNull(), f.xxhash64(seed, key)).otherwise(event)

    def _chosen(self, df: DataFrame, names: list[str]) -> list[Column]:
        shown = shown_schema(df)
        columns, problems = [], []
        for i, name in enumerate(names):
            path = find(shown, name, case_sensitive(df))
            if path is None:
                missing = unknown_column(name, list(paths(shown)))
                problems.append(missing.model_copy(update={"path": f"by[{i}]"}))
            else:
                columns.append(_hashable(*path, kind=leaf_type(shown, path)))
        if problems:
            raise Invalid(*problems)
        return columns


def _hashable(*path: str, kind: DataType) -> Column:
    """A column in a form that Spark can hash: a column with maps or variants as JSON."""
    from pyspark.sql import functions as f

    column = f.col(quote(*path))
    return column if comparable(kind) else f.to_json(column)
