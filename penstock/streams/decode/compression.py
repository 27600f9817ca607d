"""Decompression of request bodies."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import PenstockError, Problem, TooLarge, UnsupportedMediaType

CODECS = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
CHUNK = 1024 * 1024


def decompress(body: bytes, encoding: str | None, limit: int) -> bytes:
    """A body decoded by its `Content-Encoding`. No more than `limit` bytes are ever inflated."""
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        if len(body) > limit:
            raise _too_large(limit)
        return body
    if name not in CODECS:
        raise UnsupportedMediaType(
            Problem(
                code="unsupported_encoding",
                message=f"a body encoded with '{encoding}' is not accepted",
                hint="use gzip, zstd or no encoding",
            )
        )
    return _inflate(body, CODECS[name], limit) if body else b""


def _inflate(body: bytes, codec: str, limit: int) -> bytes:
    found, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
            while chunk := stream.read(min(CHUNK, limit - size + 1)):
                found.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
    except (pa.ArrowException, OSError) as error:
        raise PenstockError(
            Problem(code="bad_encoding", message=f"the body is not valid {codec}: {error}")
        ) from None
    return b"".join(found)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        Problem(
            code="body_too_large",
            message=f"the body has more than {limit} bytes",
            hint="send fewer events at once",
        )
    )
