"""CSV records: one per event, with its fields in the order of the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from penstock.processors.formats.text import Split
from penstock.streams.decode.results import Mismatch

END = "\r\n"


def csv_splitter(width: int, delimiter: str, null: str) -> Split:
    """A function that splits a record of `width` fields; a field equal to `null` has no value."""

    def split(text: str) -> Sequence[str | None]:
        try:
            records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise Mismatch("malformed_csv", f"not a valid CSV record: {error}") from None
        if len(records) != 1:
            raise Mismatch("malformed_csv", f"the event contains {len(records)} CSV records, not one")
        (record,) = records
        if len(record) != width:
            raise Mismatch("malformed_csv", f"the record has {len(record)} fields, not {width}")
        return [None if field == null else field for field in record]

    return split


def csv_line(values: Sequence[str | None], delimiter: str, null: str) -> str:
    """A record without the line ending."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=END)  # fields that contain these are quoted
    writer.writerow([null if value is None else value for value in values])
    return text.getvalue().removesuffix(END)
