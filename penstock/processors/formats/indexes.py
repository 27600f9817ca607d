"""The indexes of a protobuf message in its file, which follow the header of a registry."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

from penstock.streams.decode.results import Mismatch


def indexes_of(message: Descriptor) -> bytes:
    """The indexes of a message in its file: their number, then each index, as zigzag numbers."""
    path: list[int] = []
    inner: Descriptor | None = message
    while inner is not None:
        outer = inner.containing_type
        siblings = outer.nested_types if outer else list(inner.file.message_types_by_name.values())
        path.insert(0, [each.full_name for each in siblings].index(inner.full_name))
        inner = outer
    return b"\0" if path == [0] else b"".join(_varint(2 * n) for n in (len(path), *path))


def behind_indexes(body: bytes) -> bytes:
    """The body without the message indexes. For the first message of a file they are a single zero."""
    count, at = _read_varint(body, 0)
    for _ in range(count // 2):
        _, at = _read_varint(body, at)
    return body[at:]


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(body):
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise Mismatch("malformed_protobuf", "the message index is truncated")
