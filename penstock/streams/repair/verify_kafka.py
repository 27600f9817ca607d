"""Verification of a stream in Kafka."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.errors import Unavailable
from penstock.streams.faults import Progress, Report
from penstock.streams.kafka.storage import KafkaStorage
from penstock.streams.storage import Damaged, Span, WriteFailed

REPAIR = "only the brokers can repair it, from another replica"


def verify_topic(directory: Path, report: Report, progress: Progress) -> None:
    """Read and verify every frame that is in the journal of the stream."""
    try:
        storage = KafkaStorage(directory)
    except (Unavailable, WriteFailed) as error:
        report.add("database", "kafka", 0, 0, f"can't be read: {error}")
        return
    try:
        bounds, usage = storage.bounds(), storage.usage()
        report.segments, report.bytes = 1, usage.bytes
        for span in storage.spans(bounds.first):
            if span.base >= bounds.next:
                break
            _verify_frame(storage, span, report)
            progress(span.next - bounds.first, bounds.next - bounds.first)
    finally:
        storage.close()


def _verify_frame(storage: KafkaStorage, span: Span, report: Report) -> None:
    if span.lost is not None:
        return  # removed by retention in the meantime
    try:
        batch = storage.fetch(span)
        batch.validate()
    except Damaged as damage:
        if damage.reason != "evicted":
            kind = "missing" if damage.reason == "missing" else "damaged"
            report.add(kind, storage.topic, span.base, span.next, f"{damage.reason}; {REPAIR}")
        return
    except (pa.ArrowException, OSError, StopIteration) as error:
        report.add("body", storage.topic, span.base, span.next, f"the frame is not valid Arrow: {error}")
        return
    if batch.num_rows != span.next - span.base:
        message = f"the frame has {batch.num_rows} events instead of {span.next - span.base}"
        report.add("body", storage.topic, span.base, span.next, message)
    else:
        report.events += batch.num_rows
