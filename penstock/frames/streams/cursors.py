"""Cursors: the progress of a flow in the stream that it reads."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from penstock.frames.logs import LOGS
from penstock.frames.site import Site
from penstock.streams.home import StreamPlace
from penstock.streams.log import Log
from penstock.streams.storage import Cursor, Fenced


def cursor_in(log: Log, reader: str) -> Cursor | None:
    """The cursor of a reader, if it has started to read the stream."""
    cursors = (cursor for cursor in log.storage.cursors() if cursor.reader == reader and cursor.has_run)
    return next(cursors, None)


def forget_cursor(place: StreamPlace | None, site: Site) -> None:
    """Remove the cursor of a flow, so that its next checkpoint begins at its declared position."""
    if place is not None:
        LOGS.log(place.directory).forget_cursor(site.flow)


def keep_up(site: Site, place: StreamPlace, end: int) -> None:
    """Move the cursor of a stopped flow to an offset up to which everything is delivered.

    The reader itself moves the cursor only when Spark requests more events.
    """
    log = LOGS.log(place.directory)
    known = cursor_in(log, site.flow)
    if known is not None and known.next < end:
        with contextlib.suppress(Fenced):  # another worker has the flow, and moves the cursor
            log.move_cursor(replace(known, next=end, epoch=site.epoch, at=time.time()))


def oldest_age_ms(log: Log, first: int, end: int) -> float | None:
    """The age of the oldest event between two offsets in milliseconds; None if there is no readable event."""
    for span in log.storage.spans(first):
        if span.base >= end:
            return None
        if span.lost is None:
            return round(max(0.0, time.time() * 1000 - span.time_us / 1000), 1)
    return None
