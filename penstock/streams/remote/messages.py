"""The format of requests and responses: a JSON value, followed by binary parts.

Events are transferred in the format of the storage: bodies in requests, whole frames in responses. So the
server neither decodes nor compresses them, and the reader verifies the writer's checksum.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.streams.frames import Body
from penstock.streams.storage import (
    Append,
    Appended,
    BatchConflict,
    BatchTooOld,
    Damaged,
    Fenced,
    Full,
    Producer,
    Refusal,
    WriteFailed,
)

_SIZE = struct.Struct("<I")

LARGEST = 2**63

REFUSALS: tuple[type[Refusal], ...] = (Fenced, BatchConflict, BatchTooOld)

Parts = Sequence[bytes | pa.Buffer]


def pack(value: Any, parts: Parts = ()) -> bytes:
    """A message with a value and binary parts."""
    head = json.dumps([value, [len(part) for part in parts]], separators=(",", ":")).encode()
    return b"".join([_SIZE.pack(len(head)), head, *(memoryview(part) for part in parts)])


def unpack(message: bytes) -> tuple[Any, list[memoryview]]:
    """The value and the parts of a message; raises ValueError if it is invalid."""
    try:
        (size,) = _SIZE.unpack_from(message)
        value, sizes = json.loads(message[_SIZE.size : _SIZE.size + size])
        if not all(isinstance(each, int) and each >= 0 for each in sizes):
            raise ValueError("the sizes of the parts are not numbers")
        if sum(sizes) != len(message) - _SIZE.size - size:
            raise ValueError("the message is not complete")
    except (struct.error, TypeError, RecursionError) as error:
        raise ValueError(f"not a valid message: {error}") from None
    at, view, parts = _SIZE.size + size, memoryview(message), []
    for each in sizes:
        parts.append(view[at : at + each])
        at += each
    return value, parts


def pack_appends(appends: Sequence[Append]) -> bytes:
    """Appends as a message."""
    told = []
    for append in appends:
        p = append.producer
        who = None if p is None else [p.id, p.batch, p.epoch, p.digest, p.position]
        told.append([[[body.count, body.raw_bytes] for body in append.bodies], who, append.tx])
    return pack(told, [body.data for append in appends for body in append.bodies])


def unpack_appends(message: bytes) -> list[Append]:
    """The appends of a message; raises ValueError if it is invalid."""
    told, parts = unpack(message)
    try:
        return _appends(told, parts)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"no appends: {error}") from None


def _appends(told: Any, parts: Sequence[memoryview]) -> list[Append]:
    if sum(len(bodies) for bodies, _, _ in told) != len(parts):
        raise ValueError("the message does not have a part for each body")
    data, found = iter(parts), []
    for bodies, who, tx in told:
        if not all(type(number) is int and 0 <= number < LARGEST for body in bodies for number in body):
            raise ValueError("the counts of a body are not numbers")
        made = [Body(pa.py_buffer(next(data)), count, raw_bytes) for count, raw_bytes in bodies]
        producer = None if who is None else _producer(*who)
        found.append(Append(made, producer, tuple(_mark(*mark) for mark in tx)))
    return found


def _producer(name: str, batch: int, epoch: int, digest: str | None, position: str | None) -> Producer:
    texts = isinstance(name, str) and all(
        each is None or isinstance(each, str) for each in (digest, position)
    )
    if not texts or not _are_numbers(batch, epoch):
        raise ValueError("the producer of an append is not valid")
    return Producer(name, batch, epoch, digest, position)


def _mark(first: int, end: int, name: str, closed: bool) -> tuple[int, int, str, bool]:
    if not (_are_numbers(first, end) and isinstance(name, str) and isinstance(closed, bool)):
        raise ValueError("a mark of a transaction is not valid")
    return first, end, name, closed


def _are_numbers(*values: object) -> bool:
    """Whether values are integers in the range of a frame's fields."""
    return all(type(value) is int and 0 <= value < LARGEST for value in values)


def pack_result(result: Appended | Refusal) -> list[Any]:
    """The result of an append, as JSON."""
    if isinstance(result, Appended):
        return ["done", result.first, result.next, result.duplicate]
    return ["refused", result.code, str(result), result.hint]


def unpack_result(told: Sequence[Any]) -> Appended | Refusal:
    """The result of an append, from JSON."""
    kind, *rest = told
    return Appended(*rest) if kind == "done" else _refusal(*rest)


def pack_error(error: Exception) -> list[Any] | None:
    """An error of a storage as JSON; None for any other error."""
    match error:
        case Full():
            return ["full", error.reason]
        case Damaged():
            return ["damaged", error.first, error.next, error.reason]
        case WriteFailed():
            return ["failed", str(error)]
        case Refusal():
            return ["refused", error.code, str(error), error.hint]
    return None


def unpack_error(told: Sequence[Any]) -> Exception:
    """The error of a storage, from JSON."""
    kind, *rest = told
    kinds: dict[str, Any] = {"full": Full, "damaged": Damaged, "failed": WriteFailed, "refused": _refusal}
    made: Exception = kinds[kind](*rest)
    return made


def _refusal(code: str, text: str, hint: str) -> Refusal:
    kind = next(each for each in REFUSALS if each.code == code)
    made = kind.__new__(kind, text)
    made.args, made.hint = (text,), hint
    return made
