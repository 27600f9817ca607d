"""Search for events of a stream that meet a condition, page by page and within limits."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from penstock.control.streams.doors import Door
from penstock.control.streams.pages import PAGE_BYTES, Gap, page_of
from penstock.streams.events import RAW
from penstock.streams.filters.conditions import Condition, parse_condition

PIECE = 2_000
"""Events read at a time."""

MOST, MOST_S = 200_000, 5.0
"""Maximum events and seconds of one search request: the client then continues, or stops."""


@dataclass
class Search:
    """Events found in the offsets from `first` to before `next`."""

    first: int
    next: int
    events: list[dict[str, Any]] = field(default_factory=list)
    gap: Gap | None = None
    searched: int = 0


def condition_of(door: Door, text: str) -> Condition:
    """Parse a condition; `Invalid` if it is not valid for the events of the stream."""
    raw = door.payload.equals(RAW)
    return parse_condition(text, None if raw else door.payload.names)


def search(door: Door, condition: Condition, start: int, end: int, limit: int) -> Search:
    """The first `limit` events from `start` to before `end` that meet a condition."""
    found, size, until = Search(start, start), 0, time.monotonic() + MOST_S
    while found.next < end and found.searched < MOST and time.monotonic() < until:
        page = page_of(door, found.next, door.log.read(found.next), min(PIECE, end - found.next), PAGE_BYTES)
        if page.next == found.next or (page.gap and found.searched):
            break  # a gap is reported only at the start of a page, so the next page starts with it
        found.gap = found.gap or page.gap
        for event in page.events:
            found.searched += 1
            if not condition(event):
                continue
            found.events.append(event)
            size += len(json.dumps(event))
            if len(found.events) == limit or size >= PAGE_BYTES:
                found.next = event["offset"] + 1
                return found
        found.next = page.next
    return found


def search_back(door: Door, condition: Condition, start: int, end: int, last: int) -> Search:
    """The last `last` events from `start` to before `end` that meet a condition, searched from the end."""
    found, size, until = Search(end, end), 0, time.monotonic() + MOST_S
    while found.first > start and found.searched < MOST and time.monotonic() < until:
        begin = max(start, found.first - PIECE)
        piece = search(door, condition, begin, found.first, PIECE)
        while piece.next < found.first:  # it ended early, at a gap or at the size limit
            more = search(door, condition, piece.next, found.first, PIECE)
            if more.next == piece.next:
                break
            piece.events += more.events
            piece.searched += more.searched
            piece.next = more.next
        found.searched += piece.searched
        for event in reversed(piece.events):
            found.events.append(event)
            size += len(json.dumps(event))
            if len(found.events) == last or size >= PAGE_BYTES:
                found.first = event["offset"]
                found.events.reverse()
                return found
        found.first = begin
    found.events.reverse()
    return found
