"""Conversion of Spark frames to Arrow tables, and back.

PySpark casts tables to their own type, which pyarrow rejects for a NULL struct with fields that are not
nullable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def table_of(df: DataFrame) -> pa.Table:
    """The rows of a frame, as `DataFrame.toArrow` collects them."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    made: Any = df
    table = pa.Table.from_batches(made._collect_as_arrow(empty_list_if_zero_records=False))
    wanted = to_arrow_schema(df.schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    return table if table.schema.equals(wanted) else table.cast(wanted)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A frame with the rows of a table. Fields within its columns may be NULL, regardless of their type."""
    import pyarrow as pa

    fields = [field.with_type(_loose(field.type)) for field in table.schema]
    return spark.createDataFrame(table.cast(pa.schema(fields)))


def _loose(of: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    def loose(field: pa.Field) -> pa.Field:
        return field.with_type(_loose(field.type)).with_nullable(True)

    if pa.types.is_struct(of):
        return pa.struct([loose(field) for field in of])
    if pa.types.is_list(of):
        return pa.list_(loose(of.value_field))
    if pa.types.is_map(of):
        return pa.map_(of.key_field.with_type(_loose(of.key_type)), loose(of.item_field))
    return of
