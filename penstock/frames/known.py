"""The hidden column `$event`, made only here: it is never NULL, even if all of its fields are.

A field that is set on a NULL struct stays NULL, so a step that chose the sinks of such an event, or its key,
would have chosen nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.frames.hidden import EVENT_TYPE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


def event_of(**fields: Column) -> Column:
    """`$event` with these fields, and NULL in the others."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import DataType, StructType

    kind = DataType.fromDDL(EVENT_TYPE)
    assert isinstance(kind, StructType)
    values = [fields.pop(name, f.lit(None)).alias(name) for name in kind.names]
    assert not fields, f"'$event' has no {list(fields)}"
    return f.struct(*values).cast(kind)


def known_of(event: pa.StructArray) -> pa.StructArray:
    """`$event` as a step in Python gave it, with NULL in all fields of an event that the step made anew."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not event.null_count:
        return event
    fields = list(event.type)
    columns = [pc.struct_field(event, field.name) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields)
