"""The size of an Arrow IPC stream in memory, computed before it is read.

A small body can expand to a large one: by compressed buffers, by columns of nulls, and by values that many
rows refer to. Without a check of the sizes, it could exhaust the memory of the server.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from penstock.streams.casting import as_lists, is_view

ROW = 8
"""The minimum size of a row in a column, in bytes, even if it is null in the body."""

MESSAGE_HEADER, DICTIONARY_DATA = 2, 1
RECORD_ROWS, RECORD_BUFFERS, RECORD_COMPRESSION = 0, 2, 3
"""Field numbers in Arrow's Message.fbs: the fields of a message, and those of a record batch."""


def claimed(body: bytes, columns: int) -> int:
    """The bytes that the batches of an IPC stream declare, for a stream with `columns` columns.

    Raises `pa.ArrowInvalid` or `struct.error` if the stream is malformed.
    """
    total = 0
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type == "schema":
            continue
        table = _Table.root(message.metadata.to_pybytes()).table(MESSAGE_HEADER)
        if message.type == "dictionary":
            table = table.table(DICTIONARY_DATA)
        content = memoryview(message.body) if message.body is not None else memoryview(b"")
        total += table.number(RECORD_ROWS) * ROW * columns
        if not table.position(RECORD_COMPRESSION):
            total += len(content)
            continue
        for offset, length in table.pairs(RECORD_BUFFERS):
            # A compressed buffer begins with its uncompressed size, or with -1 if it is not compressed.
            size = struct.unpack_from("<q", content, offset)[0] if length else 0
            total += length if size < 0 else size
    return total


def expanded(array: pa.Array) -> float:
    """The size in bytes of values that rows may share, when every row has its own copy."""
    kind = array.type
    if is_.is_struct(kind):
        return sum(expanded(pc.struct_field(array, [i])) for i in range(kind.num_fields))
    if is_.is_map(kind):
        return expanded(as_lists(array).flatten())
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        return expanded(array.flatten())
    if is_.is_dictionary(kind):
        if is_.is_primitive(kind.value_type):
            return len(array) * ROW
        if not (is_.is_string(kind.value_type) or is_.is_binary(kind.value_type)):
            return math.inf
        lengths = pc.binary_length(array.dictionary)
        return pc.sum(lengths.take(array.indices).cast(pa.int64())).as_py() or 0
    if is_view(kind) and len(array):
        # A view is four 32-bit numbers, of which the first is the length.
        lengths = np.frombuffer(array.buffers()[1], "<i4")[array.offset * 4 :: 4][: len(array)]
        return int(lengths.sum(dtype="i8", where=array.is_valid().to_numpy(zero_copy_only=False)))
    return 0


class _Table(NamedTuple):
    """A table of a flatbuffer, with the few reads that are needed for the sizes."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, *struct.unpack_from("<I", data))

    def position(self, field: int) -> int:
        """The position of a field, or 0."""
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        size: int = struct.unpack_from("<H", self.data, vtable)[0]
        slot = 4 + 2 * field
        offset = struct.unpack_from("<H", self.data, vtable + slot)[0] if slot < size else 0
        return self.at + int(offset) if offset else 0

    def table(self, field: int) -> _Table:
        return _Table(self.data, self._follow(field))

    def number(self, field: int) -> int:
        at = self.position(field)
        return int(struct.unpack_from("<q", self.data, at)[0]) if at else 0

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """A vector of offsets and lengths."""
        at = self._follow(field)
        count = struct.unpack_from("<I", self.data, at)[0]
        for i in range(count):
            offset, length = struct.unpack_from("<qq", self.data, at + 4 + 16 * i)
            yield offset, length

    def _follow(self, field: int) -> int:
        at = self.position(field)
        return at + int(struct.unpack_from("<I", self.data, at)[0])
