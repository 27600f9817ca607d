"""Dead letters: events that a flow could not process, stored in a separate stream (invariant 7).

A letter is an event: its value is the input of the failed step, as JSON, and its headers state the reason. It
is read like any event of a stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.connectors.base import DeliveryId
from penstock.engine.letters.notes import Note
from penstock.engine.plan.flow import Flow
from penstock.frames.faults import Fault
from penstock.frames.logs import LOGS
from penstock.streams.events import HEADERS, KEY, META, RAW
from penstock.streams.storage import Producer, Refusal

FORM = pa.schema([*RAW, *META])

PRODUCER = "$letters"


class Letters:
    """Writes the letters of a flow, each batch once."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def write(
        self,
        faults: Sequence[Note],
        delivery: DeliveryId,
        told: Sequence[Mapping[str, Any]] = (),
        *,
        chunk: int = 0,
    ) -> int:
        """Store a chunk of the events that a batch could not process; returns the number of new letters.

        A repeated chunk adds nothing. `told` has additional headers for each letter.
        """
        if not faults:
            return 0
        site = self._flow.site
        at = _iso(datetime.now(UTC))
        headers = [
            self._headers(note, delivery, at, further)
            for note, further in zip(faults, told or [{}] * len(faults), strict=True)
        ]
        columns: dict[str, list[Any]] = {
            RAW.names[0]: [(note.row or "").encode() for note in faults],
            KEY: [None if (key := note.event.get("key")) is None else key.encode() for note in faults],
            HEADERS: [list(each.items()) for each in headers],
        }
        batch = pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in FORM], schema=FORM)
        name = chunk_name(f"{site.flow}/{PRODUCER}/{delivery.sink}/{delivery.lineage}", chunk)
        producer = Producer(name, delivery.batch, site.epoch)
        try:
            done = LOGS.log(site.stream(site.dead).directory).append(batch, producer=producer)
        except Refusal as error:
            raise Fault(error.code, str(error)) from None
        return 0 if done.duplicate else len(faults)

    @cached_property
    def _origin(self) -> str:
        """The source and stream that the offsets belong to."""
        return self._flow.position_key

    def _headers(
        self, note: Note, delivery: DeliveryId, at: str, further: Mapping[str, Any]
    ) -> dict[str, str]:
        """The headers of a letter: the reason, and the metadata of the event."""
        event, site = note.event, self._flow.site
        told = {
            "code": note.code,
            "reason": note.message,
            "step": note.step,
            "part": "sink" if note.step == delivery.sink else "step",
            "flow": site.flow,
            "revision": site.revision,
            "attempt": 1,
            "at": at,
            "lineage": delivery.lineage,
            "batch": delivery.batch,
            "origin": self._origin,
            "offset": event.get("offset"),
            "time": _iso(event["time"], "microseconds") if event.get("time") else None,
            "headers": json.dumps(dict(event["headers"])) if event.get("headers") else None,
            "sinks": json.dumps(event["sinks"]) if event.get("sinks") is not None else None,
            **further,
        }
        return {name: str(value) for name, value in told.items() if value is not None}


def chunk_name(producer: str, chunk: int) -> str:
    """The producer of a chunk of a batch: a stream remembers only the last few batches of each producer."""
    return producer if chunk == 0 else f"{producer}/{chunk}"


def _iso(moment: datetime, precision: str = "milliseconds") -> str:
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
