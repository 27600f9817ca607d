"""Text formats: JSON, and formats whose text is split into the values of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.streams.decode.csv_body import read_column
from penstock.streams.decode.json_body import BLANK, decode_texts
from penstock.streams.decode.results import Decoded, Misfit, Mismatch, nothing

Decode = Callable[[list[bytes]], Decoded]
"""Decodes values into columns. The `line` of a misfit is the number of the value, from 1."""

Split = Callable[[str], Sequence[str | None]]
"""Returns the piece of a text for each column; raises `Mismatch` if the text is not in the format."""


def json_decoder(schema: pa.Schema) -> Decode:
    """A decoder of JSON objects, as strict as the ingest of a stream."""

    def decode(values: list[bytes]) -> Decoded:
        # Empty text is not JSON either, but the parser requires a first character.
        found = decode_texts([value.strip(BLANK) or b" " for value in values], schema)
        return Decoded(found.batch, [_malformed(misfit) for misfit in found.misfits])

    return decode


def text_decoder(split: Split, schema: pa.Schema) -> Decode:
    """A decoder of text that `split` divides into pieces; nested values are JSON in these pieces."""
    blank = [None] * len(schema)

    def decode(values: list[bytes]) -> Decoded:
        if not values:
            return Decoded(nothing(schema))
        rows: list[Sequence[str | None]] = []
        faults: dict[int, Mismatch] = {}
        for i, value in enumerate(values):
            try:
                rows.append(split(value.decode()))
            except UnicodeDecodeError as error:
                faults[i] = Mismatch("invalid_utf8", f"byte {error.start + 1} is not UTF-8")
            except Mismatch as mismatch:
                faults[i] = mismatch
            if i in faults:
                rows.append(blank)
        pieces = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        columns = zip(pieces, schema, strict=True)
        arrays = [read_column(texts, field, faults, "is missing") for texts, field in columns]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if faults:
            batch = batch.filter(pa.array([i not in faults for i in range(len(values))]))
        return Decoded(batch, [faults[i].of(i + 1, values[i]) for i in sorted(faults)])

    return decode


def _malformed(misfit: Misfit) -> Misfit:
    code = "malformed_json" if misfit.code == "not_json" else misfit.code
    return Misfit(misfit.line, misfit.value, code, misfit.reason)
