"""Decoding of request bodies into record batches, once, before anything is stored."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.specs.stream import Timestamps
from penstock.streams.decode.media import decode_alone, decode_as
from penstock.streams.decode.results import Decoded, Misfit
from penstock.streams.events import KEY, META

__all__ = ["Decoded", "Misfit", "decode", "decode_alone"]


def decode(
    body: bytes,
    content_type: str | None,
    schema: pa.Schema | None,
    *,
    key: bytes | None = None,
    timestamps: Timestamps = "iso",
) -> Decoded:
    """The events of a body, for a stream with the payload `schema`; None: a raw stream.

    `key` is the key of every event without its own; `timestamps` is the format of times. Events that do not
    fit the schema are returned as misfits; only a body with a content type that the stream does not accept
    is rejected, with `UnsupportedMediaType`.
    """
    found = decode_as(content_type, body, schema, timestamps)
    if key is None or not found.batch.num_rows:
        return found
    batch = found.batch
    if KEY in batch.schema.names:
        at = batch.schema.get_field_index(KEY)
        batch = batch.set_column(at, META.field(KEY), pc.fill_null(batch.column(at), key))
    else:
        batch = batch.append_column(META.field(KEY), pa.repeat(pa.scalar(key, pa.binary()), len(batch)))
    return Decoded(batch, found.misfits)
