"""Conversion of appends to frames with offsets, and to few large writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.streams.frames import Body, Frame
from penstock.streams.producers import Batch, Producers, appended_by
from penstock.streams.storage import Append, Appended, Refusal

UNCOPIED = 64 * 1024
"""A body of this size is not copied before it is written: the copy would cost more than another call."""


def frame_appends(
    appends: Sequence[Append], offset: int, now_us: int, producers: Producers
) -> tuple[list[Frame], list[Appended | Refusal]]:
    """The frames of appends from an offset on, and the result of each append once they are written.

    `producers` is updated with the appended batches.
    """
    frames: list[Frame] = []
    results: list[Appended | Refusal] = []
    for append in appends:
        verdict = producers.judge(append.producer) if append.producer else None
        if verdict is not None:
            results.append(verdict)
            p = append.producer
            if p is not None and isinstance(verdict, Appended) and producers.outranks(p):
                repeated = producers.note_epoch(p)  # from now on the earlier epoch is fenced
                told = {"producers": [appended_by(p.id, p.epoch, repeated)]}
                frames.append(Frame(offset, now_us, Body(b"", 0, 0), told, control=True))
            continue
        if not append.events and append.producer is None:
            results.append(Appended(offset, offset))
            continue
        first, end = offset, offset + append.events
        for i, body in enumerate(append.bodies):
            ends = i == len(append.bodies) - 1
            meta: dict[str, object] = {}
            if ends and append.producer is not None:
                p = append.producer
                batch = Batch(p.batch, first, end, p.digest)
                meta["producers"] = [appended_by(p.id, p.epoch, batch, p.position)]
                producers.note(p.id, p.epoch, batch, p.position)
            if i == 0 and append.tx:  # a reader learns of a transaction before it reads its events
                meta["tx"] = [
                    [first + b, first + e, transaction, closed] for b, e, transaction, closed in append.tx
                ]
            frames.append(Frame(offset, now_us, body, meta, more=not ends))
            offset += body.count
        results.append(Appended(first, end))
    return frames, results


def joined(parts: list[bytes | pa.Buffer]) -> Iterator[bytes | pa.Buffer]:
    """Parts joined for few write calls: small parts are joined, large ones are not copied."""
    small: list[bytes | pa.Buffer] = []
    for part in parts:
        if len(part) < UNCOPIED:
            small.append(part)
        else:
            yield b"".join(small)
            yield part
            small = []
    if small:
        yield b"".join(small)
