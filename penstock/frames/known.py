"""The hidden column `$event`, made only here: it is never NULL, even if all of its fields are.

A field that is set on a NULL struct stays NULL, so a step that chose the sinks of such an event, or its key,
would have chosen nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.frames.hidden import EVENT_FIELDS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


def event_of(**fields: Column) -> Column:
    """`$event` with these fields, and NULL in the others."""
    from pyspark.sql import functions as f

    values = [
        (fields.pop(name).cast(kind) if name in fields else f.expr(_null(kind))).alias(name)
        for name, kind in EVENT_FIELDS.items()
    ]
    assert not fields, f"'$event' has no {list(fields)}"
    return f.struct(*values)


def event_from(**columns: str) -> Column:
    """`$event` with the values of columns that a connector has named, and NULL in the other fields.

    It is one expression, because making it field by field takes dozens of calls to the JVM. Each field has
    its own cast: Spark sees through a struct to the column of a field, and not through the cast of a struct.
    """
    from pyspark.sql import functions as f

    values = ", ".join(
        f"'{name}', " + (f"CAST({columns.pop(name)} AS {kind})" if name in columns else _null(kind))
        for name, kind in EVENT_FIELDS.items()
    )
    assert not columns, f"'$event' has no {list(columns)}"
    return f.expr(f"named_struct({values})")


def _null(kind: str) -> str:
    return f"CAST(NULL AS {kind})"


def known_of(event: pa.StructArray) -> pa.StructArray:
    """`$event` as a step in Python gave it, with NULL in all fields of an event that the step made anew."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not event.null_count:
        return event
    fields = list(event.type)
    columns = [pc.struct_field(event, field.name) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields)
