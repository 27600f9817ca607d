"""The hidden columns of frames, beside the visible ones."""

from __future__ import annotations

from collections.abc import Sequence

EVENT = "$event"
EVENT_FIELDS = {
    "offset": "BIGINT",
    "time": "TIMESTAMP",
    "key": "STRING",
    "headers": "MAP<STRING, STRING>",
    "sinks": "ARRAY<STRING>",
    "batch": "STRING",
    "sample": "BIGINT",
    "place": "BIGINT",
    "latest": "BIGINT",
}
EVENT_TYPE = f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in EVENT_FIELDS.items())}>"
"""`offset`, `time`, `key` and `headers` are those of the stream the event came from, if it came from one.
`sinks` are the only ones that shall get it; null: all. Events with the same `batch` stay together. In a test
run, `sample` is the number of the sample that the event was made of.

A source that has no offsets, or one for each of its partitions, may set `place` to a time by which its events
are judged in order. The first step that remembers events replaces it by the place of the event among those of
its micro-batch, and sets `latest`, the latest time of all events read before, in milliseconds."""

NOTE = "$note"
NOTE_TYPE = (
    "STRUCT<kind: STRING, step: STRING, code: STRING, message: STRING, row: STRING,"
    f" event: {EVENT_TYPE}, taken: BIGINT, given: BIGINT, ms: DOUBLE>"
)
"""`kind` is `fault` (an event for the dead letters), `late` (one for a window's side stream), `log` (a line
for the log) or `stats` (how many events a Python step took and gave, in how many milliseconds). `row` is
what the step was given, as JSON."""

TIME = "$time"
"""The time of an event, between the two halves of a step that remembers events."""

HIDDEN = (EVENT, NOTE, TIME)


def visible(names: Sequence[str]) -> list[str]:
    """The visible columns."""
    return [name for name in names if name not in HIDDEN]
