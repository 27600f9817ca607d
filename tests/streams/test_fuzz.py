"""Bytes from outside, whatever they are: of log files, and of the wire of streams."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.streams.frames import HEADER_SIZE, Frame, encode_body, is_sound, parse_header
from penstock.streams.remote.messages import pack, pack_appends, unpack, unpack_appends
from penstock.streams.storage import Append, Producer

BODY = encode_body(pa.record_batch({"value": [b"a", b"bc"]}), "none")
FRAME = b"".join(map(bytes, Frame(7, 1, BODY, {"tx": [[7, 9, "t", True]]}).encode()))
APPENDS = pack_appends([Append([BODY, BODY], Producer("p", 3, 1, "d", "x"), ((0, 2, "t", True),))])

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


def damaged(sound: bytes) -> st.SearchStrategy[bytes]:
    """Bytes with some changed, cut off or put in."""

    def change(edits: list[tuple[int, bytes, int]]) -> bytes:
        data = bytearray(sound)
        for at, new, old in edits:
            place = at % (len(data) + 1)
            data[place : place + old] = new
        return bytes(data)

    edit = st.tuples(st.integers(0, 10_000), st.binary(max_size=8), st.integers(0, 8))
    return st.lists(edit, min_size=1, max_size=4).map(change)


@given(st.binary(max_size=300) | damaged(FRAME))
def test_a_header_is_the_one_that_was_written_or_none(data: bytes) -> None:
    header = parse_header(data)
    if header is not None:
        assert data[:HEADER_SIZE] == FRAME[:HEADER_SIZE], "a checksum has passed by chance"
        assert is_sound(header, data[HEADER_SIZE:]) == (data == FRAME)


@given(st.binary(max_size=100) | damaged(APPENDS))
def test_a_message_is_read_or_refused(data: bytes) -> None:
    for reads in (unpack, unpack_appends):
        with contextlib.suppress(ValueError):
            reads(data)


def message(value: Any, parts: list[bytes]) -> bytes:
    head = json.dumps([value, [len(part) for part in parts]]).encode()
    return struct.pack("<I", len(head)) + head + b"".join(parts)


@given(ANY | st.lists(st.tuples(ANY, ANY, ANY), max_size=3), st.lists(st.binary(max_size=5), max_size=3))
@example([[[[1, 1]], ["id", "1", 0, None, None], []]], [b"x"])
@example([[[[1, 1]], [5, 1, 0, None, None], []]], [b"x"])
@example([[[[1, 1]], ["id", 1, 0, None, None], [[0, "1", "t", True]]]], [b"x"])
@example([[[[True, 1]], None, []]], [b"x"])
def test_appends_have_values_of_the_right_types_or_are_refused(value: Any, parts: list[bytes]) -> None:
    try:
        found = unpack_appends(message(value, parts))
    except ValueError:
        return
    for append in found:
        assert all(type(body.count) is int and type(body.raw_bytes) is int for body in append.bodies)
        if (producer := append.producer) is not None:
            assert isinstance(producer.id, str)
            assert type(producer.batch) is int
            assert type(producer.epoch) is int
        for first, end, name, closed in append.tx:
            assert (type(first), type(end), type(name), type(closed)) == (int, int, str, bool)


@given(ANY, st.lists(st.binary(max_size=20), max_size=4))
def test_what_was_packed_is_unpacked(value: Any, parts: list[bytes]) -> None:
    plain = json.loads(json.dumps(value))
    found, views = unpack(pack(value, parts))
    assert json.dumps(found) == json.dumps(plain)
    assert [bytes(view) for view in views] == parts
