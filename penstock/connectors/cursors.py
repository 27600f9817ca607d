"""How far a flow has come in the stream that it reads."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from penstock.connectors.base import Site, Source
from penstock.connectors.logs import LOGS
from penstock.streams.home import StreamPlace
from penstock.streams.log import Log
from penstock.streams.storage import Cursor, Fenced


def cursor_in(log: Log, reader: str) -> Cursor | None:
    """The cursor of a reader, if it has begun to read the stream."""
    cursors = (cursor for cursor in log.storage.cursors() if cursor.reader == reader and cursor.has_run)
    return next(cursors, None)


def forget_cursor(source: Source, site: Site) -> None:
    """Let a flow begin at its position again, once it begins a new checkpoint."""
    if (place := source.reads(site)) is not None:
        LOGS.log(place.directory).storage.forget_cursor(site.flow)


def keep_up(site: Site, place: StreamPlace, next: int) -> None:
    """A flow has come to rest, and all before an offset is delivered: its cursor must not tell of less.

    The reader itself moves it only when it is asked for more.
    """
    log = LOGS.log(place.directory)
    known = cursor_in(log, site.flow)
    if known is not None and known.next < next:
        with contextlib.suppress(Fenced):  # another worker has the flow, and knows better
            log.move_cursor(replace(known, next=next, epoch=site.epoch, at=time.time()))


def oldest_age_ms(log: Log, first: int, next: int) -> float | None:
    """For how long the oldest event between two offsets has been in a stream; None if it is gone."""
    for span in log.storage.spans(first):
        if span.base >= next:
            return None
        if span.lost is None:
            return round(max(0.0, time.time() * 1000 - span.time_us / 1000), 1)
    return None
