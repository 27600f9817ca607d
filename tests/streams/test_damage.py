"""Damaged files: cut at every byte, with every bit flipped. The stream is served, and tells what it lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog

from penstock.streams.frames import HEADER_SIZE, encode_body
from penstock.streams.local import tail
from penstock.streams.local.segments import Found, list_segments, walk
from penstock.streams.local.storage import LocalStorage
from penstock.streams.log import Log
from penstock.streams.storage import Append, Cursor
from tests.streams.kit import NIGHTLY, change, events, fast_directory, make_stream, opened, values

pytestmark = pytest.mark.slow

READER = "reader"
DEAR = 128
"""So many bytes have every bit flipped, and those that follow one bit each; at night all have."""


@dataclass(frozen=True)
class Piece:
    """Where a frame lies in a segment, and what it holds."""

    position: int
    end: int
    base: int
    next: int
    more: bool


@dataclass
class Stream:
    """A small stream that can be put back as it was, and then be damaged."""

    directory: Path
    events: list[bytes]
    files: dict[Path, bytes] = field(default_factory=dict)
    pieces: dict[Path, list[Piece]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        paths = [path for path in self.directory.rglob("*") if path.is_file()]
        self.files = {path: path.read_bytes() for path in paths}
        segments = list_segments([self.directory])
        limits = [*list(segments)[1:], len(self.events)]
        for (base, path), limit in zip(segments.items(), limits, strict=True):
            self.pieces[path] = list(_pieces(path, base, limit))

    @property
    def closed(self) -> Path:
        return min(self.pieces)

    @property
    def active(self) -> Path:
        return max(self.pieces)

    def restore(self, *without: str) -> None:
        """Put everything back, except for some files."""
        for path in self.directory.rglob("*"):
            if path.is_file() and path not in self.files:
                path.unlink()
        for path, data in self.files.items():
            if path.name in without:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(data)


def _pieces(path: Path, base: int, limit: int) -> Iterator[Piece]:
    with path.open("rb") as file:
        size = path.stat().st_size
        for found in walk(file.fileno(), 0, size, base, limit):
            assert isinstance(found, Found)
            header, at = found.header, found.position
            yield Piece(at, at + header.size, header.base, header.next, header.more)


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    """A closed and an active segment, each with appends of one frame and of three."""
    with fast_directory() as directory:
        small = {"segment_bytes": 100_000, "compression": "none", "batch": {"max_events": 2}}
        make_stream(directory, wal=small)
        with opened(directory) as log:
            log.append(events(1))
            log.append(events(5, 1))
            log.append(events(2, 6))
            change(directory, wal={"segment_bytes": 1})
            log.append(events(2, 8))
            change(directory, wal={"segment_bytes": 100_000})
            log.append(events(1, 10))
            log.append(events(5, 11))
            log.move_cursor(Cursor(READER, 16))
            log.storage.count(duplicates=1)  # only what counts something has a file for it
            made = Stream(directory, values(log))
        assert len(made.events) == 16
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A damaged tail is not read again and again, and nothing is printed."""
    monkeypatch.setattr(tail, "TRIES", 2)
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**before)


def served(stream: Stream) -> tuple[set[int], set[int], Cursor | None]:
    """Open a stream, see what can be read of it and what is lost, and go on with it.

    Nothing may be wrong, offsets are dense, and the next one was never used.
    """
    storage = LocalStorage(stream.directory)
    log = Log(storage)
    try:
        found, lost = set[int](), set[int]()
        at, bounds = 0, log.bounds()
        for chunk in log.read(0):
            assert chunk.base == at
            at = chunk.next
            if chunk.batch is None:
                assert chunk.lost
                lost.update(range(chunk.base, chunk.next))
            else:
                assert chunk.batch.column(0).to_pylist() == stream.events[chunk.base : chunk.next]
                found.update(range(chunk.base, chunk.next))
        assert at == bounds.next
        cursor = next((cursor for cursor in log.storage.cursors() if cursor.reader == READER), None)
        body = encode_body(events(1, 99), "zstd")
        (done,) = storage.write([Append([body])])
        assert not isinstance(done, Exception)
        assert done.first == bounds.next
        assert values(log, done.first) == [b"e99"]
        return found, lost, cursor
    finally:
        log.close()


def bits(data: bytes) -> Iterator[int]:
    """The bits to flip."""
    for at in range(len(data)):
        for bit in range(8) if NIGHTLY or at < DEAR else (at % 8,):
            yield at * 8 + bit


def flip(path: Path, data: bytes, bit: int) -> None:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)


def readable(stream: Stream, path: Path, keeps: Callable[[Piece], bool], *, whole: bool) -> set[int]:
    """The offsets that must be there if a segment keeps only some of its frames.

    With `whole`, nothing is known of where the segment ended: frames at its end that belong to an append
    which is not there as a whole do not count.
    """
    found: set[int] = set()
    for segment, pieces in stream.pieces.items():
        kept = [piece for piece in pieces if segment != path or keeps(piece)]
        while whole and segment == path and kept and kept[-1].more:
            kept.pop()
        found.update(offset for piece in kept for offset in range(piece.base, piece.next))
    return found


def target(stream: Stream, name: str) -> Path:
    return stream.closed if name == "closed" else stream.active


CASES = [("closed", ()), ("active", ()), ("active", ("tail",)), ("closed", ("tail",))][
    : None if NIGHTLY else 3
]
IDS = ["closed", "active", "active-without-tail", "closed-without-tail"][: len(CASES)]


@pytest.mark.parametrize(("name", "without"), CASES, ids=IDS)
def test_a_segment_cut_at_every_byte(stream: Stream, name: str, without: tuple[str, ...]) -> None:
    path = target(stream, name)
    whole = name == "active" and bool(without)
    for size in range(len(stream.files[path])):
        stream.restore(*without)
        path.write_bytes(stream.files[path][:size])
        wanted = readable(stream, path, lambda piece, size=size: piece.end <= size, whole=whole)  # type: ignore[misc]
        found, lost, _ = served(stream)
        assert found == wanted, size
        assert lost == set(range(16)) - wanted, size


@pytest.mark.parametrize(("name", "without"), CASES, ids=IDS)
def test_a_segment_with_every_bit_flipped(stream: Stream, name: str, without: tuple[str, ...]) -> None:
    path = target(stream, name)
    data, pieces = stream.files[path], stream.pieces[path]
    for bit in bits(data):
        stream.restore(*without)
        flip(path, data, bit)
        hit = next(piece for piece in pieces if piece.position <= bit // 8 < piece.end)
        # A sound header tells that its frame was the end of its append, even if the rest of it is damaged.
        headless = bit // 8 < hit.position + HEADER_SIZE
        whole = name == "active" and bool(without) and headless and hit is pieces[-1]
        wanted = readable(stream, path, lambda piece, hit=hit: piece is not hit, whole=whole)  # type: ignore[misc]
        found, lost, _ = served(stream)
        assert found == wanted, bit
        assert lost == set(range(16)) - wanted, bit


@pytest.mark.parametrize("name", ["index", "cursor", "tail", "counters"])
def test_another_file_damaged_anywhere(stream: Stream, name: str) -> None:
    path = next(path for path in stream.files if name in (path.name, path.suffix[1:]))
    data = stream.files[path]
    for bit in bits(data):
        stream.restore()
        flip(path, data, bit)
        check_all_is_there(stream)
    for size in range(0, len(data), 1 if name != "counters" or NIGHTLY else 8):
        stream.restore()
        path.write_bytes(data[:size])
        check_all_is_there(stream)


def check_all_is_there(stream: Stream) -> None:
    found, lost, cursor = served(stream)
    assert (len(found), lost) == (16, set())
    assert cursor is None or (cursor.next, cursor.epoch, cursor.skipped) == (16, 0, 0)
    with opened(stream.directory) as log:
        log.move_cursor(Cursor(READER, 17))
        assert [cursor.next for cursor in log.storage.cursors()] == [17]
        log.storage.count(damaged=1)


def test_a_segment_is_gone(stream: Stream) -> None:
    for path in (stream.closed, stream.active):
        for without in ((), ("tail",)):
            stream.restore(path.name, *without)
            found, lost, _ = served(stream)
            assert found == readable(stream, path, lambda piece: False, whole=False)
            assert lost == set(range(16)) - found


def test_a_torn_frame_without_any_witness(stream: Stream) -> None:
    """A header that is whole tells how far the log went, even if nothing else does."""
    last = stream.pieces[stream.active][-1]
    cursor = next(path.name for path in stream.files if path.suffix == ".cursor")
    for size in range(last.position + HEADER_SIZE, last.end):
        stream.restore("tail", cursor)
        stream.active.write_bytes(stream.files[stream.active][:size])
        found, lost, _ = served(stream)
        assert found == set(range(11))  # the append of which it was a part is not there as a whole
        assert lost == set(range(11, 16))
