"""Rows as JSON that reads back as the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Formats with microseconds: by default Spark truncates times to milliseconds."""


def to_json(*columns: Column) -> Column:
    """Columns as one JSON object; nulls are omitted."""
    from pyspark.sql import functions as f

    return f.to_json(f.struct(*columns), EXACT)
