"""The receiver of the `redis` source: reads a Redis stream by entry id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from penstock.connectors.messages.source import raw_events
from penstock.connectors.received import Received, Receiver
from penstock.connectors.redis.client import failure_of, wrong_type
from penstock.connectors.redis.entries import BEGINNING, Id, event_of, id_text, parse_id, parse_start
from penstock.errors import Invalid, Problem

if TYPE_CHECKING:
    from redis import Redis

    from penstock.connectors.redis.source import RedisSource


@dataclass(frozen=True)
class _State:
    """The state of a stream, as Redis reports it."""

    last: Id = BEGINNING
    """The id of the last entry that was ever added."""
    length: int = 0
    added: int | None = None
    """Number of entries that were ever added; None before Redis 7."""
    deleted: Id = BEGINNING
    """The highest id of an entry that was deleted individually, and not trimmed."""

    @classmethod
    def of(cls, info: dict[str, Any]) -> Self:
        """The state in a response to XINFO STREAM."""
        last, deleted = (
            parse_id(found.decode()) if (found := info.get(name)) is not None else BEGINNING
            for name in ("last-generated-id", "max-deleted-entry-id")
        )
        added = info.get("entries-added")
        return cls(last, int(info["length"]), None if added is None else int(added), deleted)

    @property
    def removed(self) -> int | None:
        """Number of entries that were removed, of all that were ever added."""
        return None if self.added is None else self.added - self.length


class RedisReceiver(Receiver):
    """Reads the entries of a stream after a position.

    A position is the id of the last entry that was read and, if known, the number of entries added up to it:
    a stream that has lost more entries than this number has lost entries that were not read.
    """

    def __init__(self, source: RedisSource) -> None:
        self.source = source
        self._redis: Redis | None = None
        self._last: Id = BEGINNING
        self._read: int | None = None
        """Number of entries added up to the last entry that was read; None: unknown."""
        self._deleted: Id = BEGINNING
        """Deletions of entries up to this id are ignored."""
        self._state = _State()

    def open(self, position: str | None) -> None:
        from redis import RedisError

        self._redis = self.source.connect()
        try:
            state = self._look()[0]
        except RedisError as error:
            raise self._failure(error) from None
        if position is not None:
            entry, _, count = position.partition(" ")
            self._last, self._read = parse_id(entry), int(count) if count else None
        else:
            start = parse_start(self.source.position)
            self._last = state.last if start is None else start
            self._read = state.removed if start == BEGINNING else None
            self._deleted = state.deleted  # entries removed before the first start are not a gap
        self._judge(state)

    def receive(self, wait_s: float) -> Received | None:
        from redis import RedisError

        try:
            entries = self._next() or (self._wait(wait_s) and self._next())
        except RedisError as error:
            raise self._failure(error) from None
        if not entries:
            return None
        self._last = parse_id(entries[-1][0].decode())
        self._read = None if self._read is None else self._read + len(entries)
        self._settle()
        values, keys, headers = zip(*(event_of(fields) for _, fields in entries), strict=True)
        count = "" if self._read is None else f" {self._read}"
        return Received(raw_events(values, keys, headers), id_text(self._last) + count)

    def lag(self) -> int | None:
        if self._last >= self._state.last:
            return 0
        if self._read is None or self._state.added is None:
            return None
        return max(0, self._state.added - self._read)

    def stop(self) -> None:
        if self._redis is not None:
            self._redis.connection_pool.disconnect()

    def close(self) -> None:
        if self._redis is not None:
            self._redis.close()

    def _next(self) -> list[Any]:
        """The next entries that are available now."""
        state, entries = self._look()
        self._judge(state)
        return entries

    def _look(self) -> tuple[_State, list[Any]]:
        """The state of the stream and the entries after the last entry that was read, read atomically."""
        assert self._redis is not None
        with self._redis.pipeline(transaction=True) as both:
            both.xinfo_stream(self.source.key)
            both.xread({self.source.key: id_text(self._last)}, self.source.prefetch)
            info, found = both.execute(raise_on_error=False)
        if isinstance(info, Exception):
            if "no such key" not in str(info):
                raise info
            return _State(), []
        if isinstance(found, Exception):
            raise found
        return _State.of(info), _entries(found)

    def _wait(self, seconds: float) -> bool:
        """Wait for the next entry."""
        assert self._redis is not None
        after: dict[Any, Any] = {self.source.key: id_text(self._last)}
        return bool(self._redis.xread(after, 1, block=max(1, int(seconds * 1000))))

    def _judge(self, state: _State) -> None:
        """Compare the stream with the entries read so far; raises `Invalid` if it has lost unread entries."""
        self._state = state
        removed, read = state.removed, self._read
        anew = self._last > state.last or (
            read is not None and state.added is not None and state.added < read
        )
        lost = removed is not None and read is not None and removed > read
        lost = lost or state.deleted > max(self._last, self._deleted)
        if anew and state.last == self._last == BEGINNING:
            anew = False  # the stream doesn't exist yet
        if (anew or lost) and self.source.gap == "fail":
            message = "entries were removed from the stream before they were read"
            hint = "set gap: skip to continue with the oldest available entry, or start over"
            if anew:
                message = f"the stream no longer has entry {id_text(self._last)}: it was recreated"
            raise Invalid(Problem(code="gap", message=message, path="gap", hint=hint))
        if anew or lost:
            self._last = BEGINNING if self._last > state.last else self._last
            self._read, self._deleted = removed, state.deleted
        self._settle()

    def _settle(self) -> None:
        """Correct the count of entries where it is certain: at the end of the stream."""
        if self._last >= self._state.last and self._state.added is not None:
            self._read = self._state.added

    def _failure(self, error: Exception) -> Exception:
        if "WRONGTYPE" in str(error):
            return Invalid(wrong_type(self.source.key, "value of another type"))
        return failure_of(error, self.source)


def _entries(found: Any) -> list[Any]:
    """The entries in a response to XREAD, which is a list or, in RESP 3, a dictionary."""
    if isinstance(found, dict):
        return [entry for each in found.values() for entries in each for entry in entries]
    return list(found[0][1]) if found else []
