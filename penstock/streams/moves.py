"""The state of a stream's move to another storage, in files of the stream's directory.

move.json      a move has begun, with its target; the stream is still in the storage named in `stream.json`
move.lock      held by the process that moves the stream
moved.json     the stream was moved; the former storage still has files with the events before this offset
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Conflict, Problem
from penstock.streams.files import Files
from penstock.streams.kafka.cluster import Cluster

LEFT_S = 60.0
"""Minimum seconds before local files are removed: a read without a cursor may be using them."""

NOTE, LOCK, LEFT = "move.json", "move.lock", "moved.json"


@dataclass(frozen=True)
class MoveNote:
    """A move that has begun."""

    to: Cluster
    topic: str


def is_moving(directory: Path) -> bool:
    """Whether a move has begun, and was neither finished nor undone."""
    return (directory / NOTE).exists()


def read_note(directory: Path) -> MoveNote | None:
    """The current move, or None."""
    try:
        found = json.loads((directory / NOTE).read_bytes())
        return MoveNote(Cluster(**found["kafka"]), found["topic"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_note(directory: Path, note: MoveNote) -> None:
    """Record that a move has begun."""
    text = json.dumps({"kafka": note.to.to_json(), "topic": note.topic}, indent=2)
    Files().replace(directory / NOTE, text.encode(), durable=True)


def remove_note(directory: Path) -> None:
    """Remove the record of a move that is finished or undone."""
    (directory / NOTE).unlink(missing_ok=True)


@contextlib.contextmanager
def moving(directory: Path) -> Iterator[None]:
    """Lock the stream for a move; raises `Conflict` if another process is moving it."""
    fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message, hint = (
                "the stream is already being moved",
                "wait until the move has finished, or undo it",
            )
            raise Conflict(Problem(code="move_running", message=message, hint=hint)) from None
        yield
    finally:
        os.close(fd)


def leave_files(directory: Path, upto: int) -> None:
    """Record that local files remain, which readers before the offset `upto` may still use."""
    Files().replace(directory / LEFT, json.dumps({"next": upto}).encode(), durable=True)


def left_files(directory: Path) -> int | None:
    """The offset before which readers may still use local files; None if no files can be removed yet."""
    try:
        if time.time() - (directory / LEFT).stat().st_mtime < LEFT_S or is_moving(directory):
            return None
        return int(json.loads((directory / LEFT).read_bytes())["next"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_left_files(directory: Path) -> None:
    """Remove the remaining files of a local stream, the record of them last."""
    files = [path for path in directory.iterdir() if path.suffix in (".log", ".index")]
    for path in [*files, *(directory / name for name in ("tail", "lock", "counters", "floor", LOCK))]:
        path.unlink(missing_ok=True)
    for name in ("cursors", "spill"):
        shutil.rmtree(directory / name, ignore_errors=True)
    (directory / LEFT).unlink(missing_ok=True)
