"""What steps that remember events make of them, event by event, in plain Python.

Events are judged in the order in which they were read. LATEST is the greatest time, in whole milliseconds, of
all events before the one that is judged; nothing else decides whether it is late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Event:
    """An event as these models see it. Times are microseconds since 1970."""

    id: int
    us: int
    key: Hashable = None

    @property
    def ms(self) -> int:
        return self.us // 1000


@dataclass
class Windows:
    """By start, end and key: the events of each window; and those that were late."""

    events: dict[tuple[int, int, Hashable], list[Event]] = field(default_factory=lambda: defaultdict(list))
    late: list[Event] = field(default_factory=list)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time of so many microseconds since 1970, in UTC."""
    return (EPOCH + timedelta(microseconds=us)).replace(tzinfo=None)


def judged(events: Sequence[Event]) -> Iterator[tuple[Event, int | None]]:
    """Each event with LATEST."""
    latest: int | None = None
    for event in events:
        yield event, latest
        latest = event.ms if latest is None else max(latest, event.ms)


def _passed(moment_ms: int, latest: int | None) -> bool:
    return latest is not None and moment_ms <= latest


def hopping(
    events: Sequence[Event], size_ms: int, slide_ms: int, *, offset_ms: int = 0, lateness_ms: int = 0
) -> Windows:
    """Windows of `size_ms` that begin every `slide_ms`; tumbling ones if both are the same.

    An event counts in each of its windows that is not closed, and is late if all of them are.
    """
    found = Windows()
    for event, latest in judged(events):
        last = event.us - (event.us - offset_ms * 1000) % (slide_ms * 1000)
        starts = range(last, event.us - size_ms * 1000, -slide_ms * 1000)
        open_ = [s for s in starts if not _passed(s // 1000 + size_ms + lateness_ms, latest)]
        for start in open_:
            found.events[start, start + size_ms * 1000, event.key].append(event)
        if not open_:
            found.late.append(event)
    return found


def sessions(events: Sequence[Event], gap_ms: int, *, lateness_ms: int = 0) -> Windows:
    """Events of a key of which each is no more than `gap_ms` after the one before."""
    found = Windows()
    by_key: dict[Hashable, list[Event]] = defaultdict(list)
    for event, latest in judged(events):
        if _passed(event.ms + gap_ms + lateness_ms, latest):
            found.late.append(event)
        else:
            by_key[event.key].append(event)
    for key, own in by_key.items():
        session: list[Event] = []
        for event in sorted(own, key=lambda each: each.us):
            if session and event.us - session[-1].us > gap_ms * 1000:
                _close(found, session, gap_ms, key)
                session = []
            session.append(event)
        _close(found, session, gap_ms, key)
    return found


def _close(found: Windows, session: list[Event], gap_ms: int, key: Hashable) -> None:
    found.events[session[0].us, session[-1].us + gap_ms * 1000, key] = session


def dedupe(events: Sequence[Event], within_ms: int) -> tuple[list[Event], int]:
    """The events that pass, and how many are left out: late ones and duplicates of those that have passed."""
    passed: dict[Hashable, list[Event]] = defaultdict(list)
    kept: list[Event] = []
    for event, latest in judged(events):
        late = latest is not None and latest - event.ms > within_ms
        if late or any(abs(event.us - other.us) <= within_ms * 1000 for other in passed[event.key]):
            continue
        passed[event.key].append(event)
        kept.append(event)
    return kept, len(events) - len(kept)
