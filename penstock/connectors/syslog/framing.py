"""Splits a stream of bytes into messages, by octet counting or by newlines (RFC 6587)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Framing = Literal["auto", "octet_counting", "newline"]

_LENGTH = re.compile(rb"([1-9][0-9]{0,8}) ")
_START = re.compile(rb"[0-9]{1,9}")


class Frames:
    """Splits the bytes of one connection into messages. A message that is too long becomes several."""

    def __init__(self, framing: Framing, max_bytes: int) -> None:
        self._framing, self._max = framing, max_bytes
        self._rest = bytearray()
        self._missing = 0
        """Remaining bytes of the current message, if its length is known."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are completed by further bytes."""
        self._rest += data
        while self._rest:
            if self._framing == "auto":
                self._framing = "octet_counting" if self._rest[:1].isdigit() else "newline"
            frame = self._counted() if self._framing == "octet_counting" else self._line()
            if frame is None:
                return
            if frame:
                yield frame

    def end(self) -> bytes | None:
        """The last message, which is terminated only by the end of the connection."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest or None

    def _counted(self) -> bytes | None:
        if not self._missing:
            found = _LENGTH.match(self._rest)
            if found is None:
                if _START.fullmatch(self._rest):
                    return None
                self._framing = "newline"  # not a length: reading the rest as lines loses nothing
                return b""
            self._missing = int(found[1])
            del self._rest[: found.end()]
        return self._cut(min(self._missing, self._max))

    def _cut(self, size: int) -> bytes | None:
        if len(self._rest) < size:
            return None
        frame = bytes(self._rest[:size])
        del self._rest[:size]
        self._missing -= size
        return frame

    def _line(self) -> bytes | None:
        end = self._rest.find(b"\n", 0, self._max + 1)
        if end < 0:
            if len(self._rest) <= self._max:
                return None
            frame = bytes(self._rest[: self._max])
            del self._rest[: self._max]
            return frame
        frame = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return frame.rstrip(b"\r")
