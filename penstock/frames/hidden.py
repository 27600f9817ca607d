"""The hidden columns of frames."""

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
"""`offset`, `time`, `key` and `headers` are those of the event in its stream, if it was read from a stream.
`sinks` are the only sinks that get the event; null: all. Events with the same `batch` stay together. In a
test run, `sample` is the number of the sample that the event comes from.

A source without offsets, or with separate offsets per partition, may set `place` to a time that defines the
order of its events. The first stateful step replaces it by the position of the event in its micro-batch, and
sets `latest`, the latest time of all events read before, in milliseconds."""

NOTE = "$note"
NOTE_TYPE = (
    "STRUCT<kind: STRING, step: STRING, code: STRING, message: STRING, row: STRING,"
    f" event: {EVENT_TYPE}, taken: BIGINT, given: BIGINT, ms: DOUBLE>"
)
"""`kind` is `fault` (an event for the dead letters), `late` (an event for a window's side stream), `log` (a
line for the log) or `stats` (input and output counts of a Python step, and its milliseconds). `row` is the
input of the step, as JSON."""

TIME = "$time"
"""The time of an event, between the two halves of a stateful step."""

HIDDEN = (EVENT, NOTE, TIME)


def visible(names: Sequence[str]) -> list[str]:
    """The visible columns."""
    return [name for name in names if name not in HIDDEN]
