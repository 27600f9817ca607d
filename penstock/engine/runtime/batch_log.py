"""The batches of a flow, one line each, in a file next to the flow's log.

Writing them never fails or blocks a flow: lines are not synced, and a full disk loses them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from penstock.redaction import redacted

FILE, OLDER = "batches.log", "batches.log.1"

MOST_BYTES = 256 * 1024
"""The size in bytes at which the file is rotated, after about 1,500 batches. One older file is retained."""


class BatchLine(BaseModel):
    """A batch of a flow, or an attempt to run that failed."""

    at: datetime = Field(description="When the batch began, or the attempt failed.")
    batch: int | None = Field(description="Number of the batch; null for an attempt that failed.")
    events: int | None = Field(description="Events read; null for an attempt that failed.")
    duration_ms: float | None
    latency_ms: float | None = Field(description="Age of the oldest event when the batch was delivered.")
    outcome: Literal["committed", "failed"]
    error: str | None = Field(description="Why the attempt failed.")


def write_batches(directory: Path | None, lines: Sequence[BatchLine]) -> None:
    """Add lines to the batches of a flow, if its directory exists."""
    if directory is None or not lines:
        return
    text = "".join(f"{redacted(line.model_dump_json())}\n" for line in lines)
    path = directory / FILE
    with contextlib.suppress(OSError):
        with path.open("ab") as file:
            file.write(text.encode())
            size = file.tell()
        if size >= MOST_BYTES:
            os.replace(path, directory / OLDER)


def read_batches(directory: Path, limit: int) -> list[BatchLine]:
    """The last batches of a flow, newest first."""
    found: list[BatchLine] = []
    for name in (FILE, OLDER):
        if len(found) < limit:
            found += _newest_first(directory / name)
    return found[:limit]


def _newest_first(path: Path) -> Iterator[BatchLine]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return
    for text in reversed(lines):
        with contextlib.suppress(ValidationError):  # truncated by a crash
            yield BatchLine.model_validate_json(text)
