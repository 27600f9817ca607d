"""The connection test of Redis: checks the server, the login and the type of the key."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.connectors.probe import Probe, unreachable
from penstock.connectors.redis.client import RedisEnd, failure_of, wrong_type
from penstock.errors import PenstockError, Problem

if TYPE_CHECKING:
    from redis import Redis

SAMPLE, SHOWN = 5, 500
"""Maximum entries of a sample, and maximum characters shown of a field."""

MOST, SEARCH_S = 200, 2.0
"""Maximum number of streams to offer, and maximum seconds to search for them."""


def probe_redis(end: RedisEnd, stream: str | None, *, must_exist: bool = False) -> Probe:
    """The result of the connection test. `stream` is the key of the stream, if known."""
    if problems := unreachable([end.address], "address"):
        return Probe(problems=problems)
    try:
        client = end.connect()
    except PenstockError as error:
        return Probe(problems=error.problems)
    from redis import RedisError

    try:
        return _found(client, stream, must_exist=must_exist)
    except RedisError as error:
        failure = failure_of(error, end)
        if isinstance(failure, PenstockError):
            return Probe(problems=failure.problems)
        hint = "check the log of the server"
        return Probe(problems=[Problem(code="redis_failed", message=str(failure), path="address", hint=hint)])
    finally:
        client.close()


def _found(client: Redis, stream: str | None, *, must_exist: bool) -> Probe:
    names = _streams(client)
    if stream is None:
        return Probe(offers={"streams": names})
    kind: Any = client.type(stream)
    problems = []
    if kind == b"none" and must_exist:
        hint = f"one of: {', '.join(names)}" if names else "it is read once it has an entry"
        message = f"there is no stream '{stream}'"
        problems = [Problem(code="unknown_stream", message=message, path="key", hint=hint)]
    elif kind not in (b"none", b"stream"):
        problems = [wrong_type(stream, kind.decode())]
    entries: Any = client.xrevrange(stream, count=SAMPLE) if kind == b"stream" else []
    return Probe(problems=problems, offers={"streams": names}, sample=[_shown(*e) for e in entries[::-1]])


def _streams(client: Redis) -> list[str]:
    """The names of the streams found within `SEARCH_S` seconds: Redis can only list streams by a scan."""
    found: list[str] = []
    until, cursor = time.monotonic() + SEARCH_S, 0
    while True:
        answer: Any = client.scan(cursor, count=1000, _type="stream")
        cursor, names = int(answer[0]), answer[1]
        found += [name.decode(errors="replace") for name in names]
        if cursor == 0 or len(found) >= MOST or time.monotonic() > until:
            return sorted(found)[:MOST]


def _shown(entry: bytes, fields: dict[bytes, bytes]) -> dict[str, Any]:
    shown = {name.decode(errors="replace"): _text(value) for name, value in fields.items()}
    return {"id": entry.decode(), **shown}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")[:SHOWN]
