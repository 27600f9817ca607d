"""Plain text and binary bodies, for raw streams."""

from __future__ import annotations

from penstock.streams.decode.results import Decoded, Misfit, raw_batch


def decode_text(body: bytes) -> Decoded:
    """One event per line, including empty lines. Line endings are not part of the events."""
    if not body:
        return Decoded(raw_batch([]))
    lines = body.removesuffix(b"\n").split(b"\n")
    if b"\r" in body:
        lines = [line.removesuffix(b"\r") for line in lines]
    try:
        body.decode()
    except UnicodeDecodeError:
        return _each(lines)
    return Decoded(raw_batch(lines))


def decode_bytes(body: bytes) -> Decoded:
    """The whole body as one event."""
    return Decoded(raw_batch([body] if body else []))


def _each(lines: list[bytes]) -> Decoded:
    good, misfits = [], []
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            misfits.append(Misfit(number, line, "invalid_utf8", f"byte {error.start + 1} is not UTF-8"))
        else:
            good.append(line)
    return Decoded(raw_batch(good), misfits)
