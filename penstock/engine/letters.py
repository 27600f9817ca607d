"""Dead letters: what a flow could not process, kept in a stream of its own (invariant 7).

A letter is an event: its value is what the step was given, as JSON, and its headers say why it is here.
Whoever can read a stream can read letters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from penstock.connectors.base import DeliveryId
from penstock.connectors.faults import Fault
from penstock.connectors.logs import LOGS
from penstock.engine.flow import Flow
from penstock.engine.notes import Note
from penstock.streams.events import HEADERS, KEY, META, RAW
from penstock.streams.storage import Fenced, Producer

FORM = pa.schema([*RAW, *META])

PRODUCER = "$letters"


class Letters:
    """Writes the letters of a flow, each batch once."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def write(self, faults: Sequence[Note], delivery: DeliveryId, *, attempt: int = 1) -> None:
        """Keep what a batch left behind; a batch that is repeated adds nothing."""
        if not faults:
            return
        site = self._flow.site
        at = _iso(datetime.now(UTC))
        headers = [self._headers(note, delivery, at, attempt) for note in faults]
        columns: dict[str, list[Any]] = {
            RAW.names[0]: [(note.row or "").encode() for note in faults],
            KEY: [None if (key := note.event.get("key")) is None else key.encode() for note in faults],
            HEADERS: [list(each.items()) for each in headers],
        }
        batch = pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in FORM], schema=FORM)
        producer = Producer(
            f"{site.flow}/{PRODUCER}/{delivery.sink}/{delivery.lineage}", delivery.batch, site.epoch
        )
        try:
            LOGS.log(site.stream(site.dead).directory).append(batch, producer=producer)
        except Fenced as error:
            raise Fault("fenced", str(error)) from None

    def _headers(self, note: Note, delivery: DeliveryId, at: str, attempt: int) -> dict[str, str]:
        """Why an event is here, and what was known of it."""
        event, site = note.event, self._flow.site
        told = {
            "code": note.code,
            "reason": note.message,
            "step": note.step,
            "flow": site.flow,
            "revision": site.revision,
            "attempt": attempt,
            "at": at,
            "lineage": delivery.lineage,
            "batch": delivery.batch,
            "offset": event.get("offset"),
            "time": _iso(event["time"]) if event.get("time") else None,
            "headers": json.dumps(event["headers"]) if event.get("headers") else None,
        }
        return {name: str(value) for name, value in told.items() if value is not None}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
