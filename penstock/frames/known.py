"""Construction of the hidden column `$event`: it is never NULL, even if all of its fields are.

A field that is set on a NULL struct stays NULL, so if a step set the sinks or the key of such an event, this
would have no effect.
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
    """`$event` with the values of columns named by a connector, and NULL in the other fields.

    It is one expression, because building it field by field takes dozens of calls to the JVM. Each field has
    its own cast: Spark can optimize through a struct to the column of a field, but not through a cast of a
    struct.
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
    """`$event` as returned by a Python step; for an event that the step has created, all fields are NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not event.null_count:
        return event
    fields = list(event.type)
    columns = [pc.struct_field(event, field.name) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields)
