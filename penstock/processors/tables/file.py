"""Tables in files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from penstock.errors import Retryable
from penstock.frames.faults import Fault
from penstock.processors.tables.fit import check_names, check_rows, fitted
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with
from penstock.specs.reach import FilePath

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.streams.decode.results import Decoded, Mismatch

Format = Literal["csv", "json", "parquet"]
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}


class FileTable(Spec):
    """A file on the machine that the flow runs on."""

    path: FilePath = Field(min_length=1, description="The file.")
    format: Format | None = Field(
        default=None,
        description="`csv` with a header, `json` (lines or an array of objects) or `parquet`."
        " Default: by file extension.",
    )
    delimiter: str = Field(
        default=",",
        min_length=1,
        max_length=1,
        description="Separator between fields.",
        json_schema_extra=only_with(format=["csv", None]),
    )

    @property
    def kind(self) -> Format | None:
        """The format, if it is set or can be inferred from the name."""
        return self.format or ENDINGS.get(Path(self.path).suffix.lower())

    def stamp(self) -> object:
        """A value that changes when the file changes."""
        found = os.stat(Path(self.path).expanduser())
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self, schema: pa.Schema, most: int) -> pa.RecordBatch:
        """The rows, with the names and types of `schema`."""
        import pyarrow as pa

        path = Path(self.path).expanduser()
        try:
            if self.kind == "parquet":
                return _parquet(path, schema, most)
            if self.kind == "json":
                return _json(path.read_bytes(), schema, most)
            return _csv(path, self.delimiter, schema, most)
        except OSError as error:
            raise Retryable(f"cannot read the table {self.path}: {error.strerror or error}") from error
        except pa.ArrowException as error:
            raise Fault("lookup_table", f"cannot read the table {self.path}: {error}") from None


def _parquet(path: Path, schema: pa.Schema, most: int) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.parquet

    file = pa.parquet.ParquetFile(path)
    check_rows(file.metadata.num_rows, most)
    check_names(file.schema_arrow.names, schema)
    table = file.read(columns=schema.names)
    return pa.RecordBatch.from_arrays(
        [fitted(table.column(field.name).combine_chunks(), field) for field in schema], schema=schema
    )


def _json(body: bytes, schema: pa.Schema, most: int) -> pa.RecordBatch:
    from penstock.streams.decode.json_body import BLANK, decode_document, decode_lines

    body = body.strip(BLANK)
    found: Decoded = (decode_document if body.startswith(b"[") else decode_lines)(body, schema)
    for misfit in found.misfits:
        raise Fault("lookup_table", f"row {misfit.line} of the table: {misfit.reason}")
    check_rows(found.batch.num_rows, most)
    return found.batch


def _csv(path: Path, delimiter: str, schema: pa.Schema, most: int) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.csv

    from penstock.streams.decode.csv_body import parse_column

    options = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(schema.names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with pa.csv.open_csv(path, parse_options=parsing, convert_options=options) as reader:
        check_names(reader.schema.names, schema)
        table = pa.Table.from_batches(_bounded(reader, most), reader.schema)
    faults: dict[int, Mismatch] = {}
    arrays = [parse_column(table.column(f.name).combine_chunks(), f, faults) for f in schema]
    if faults:
        row = min(faults)
        raise Fault("lookup_table", f"row {row + 1} of the table: {faults[row]}")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _bounded(reader: Any, most: int) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        check_rows(rows := rows + batch.num_rows, most)
        yield batch
