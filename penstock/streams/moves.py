"""A stream that is being moved to another storage: the notes of the move in the stream's directory.

move.json      a move has begun, and where to; the stream is where `stream.json` says
move.lock      held by the process that moves the stream
moved.json     the stream was moved, and files of its former storage are left, for events before this offset
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
"""Seconds for which local files stay at least: a read without a cursor may have begun."""

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
    """The move that has begun, if there is one."""
    try:
        found = json.loads((directory / NOTE).read_bytes())
        return MoveNote(Cluster(**found["kafka"]), found["topic"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_note(directory: Path, note: MoveNote) -> None:
    """Keep that a move has begun."""
    text = json.dumps({"kafka": note.to.to_json(), "topic": note.topic}, indent=2)
    Files().replace(directory / NOTE, text.encode(), durable=True)


def remove_note(directory: Path) -> None:
    """Forget a move that is finished or undone."""
    (directory / NOTE).unlink(missing_ok=True)


@contextlib.contextmanager
def moving(directory: Path) -> Iterator[None]:
    """Be the only process that moves the stream; `Conflict` if another one does."""
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
    """Keep that local files are left, which readers before the offset `upto` may still use."""
    Files().replace(directory / LEFT, json.dumps({"next": upto}).encode(), durable=True)


def left_files(directory: Path) -> int | None:
    """The offset before which readers may still use local files; None if there is none to remove."""
    try:
        if time.time() - (directory / LEFT).stat().st_mtime < LEFT_S or is_moving(directory):
            return None
        return int(json.loads((directory / LEFT).read_bytes())["next"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_left_files(directory: Path) -> None:
    """Remove what a local stream has left; the note of it last."""
    files = [path for path in directory.iterdir() if path.suffix in (".log", ".index")]
    for path in [*files, *(directory / name for name in ("tail", "lock", "counters", "floor", LOCK))]:
        path.unlink(missing_ok=True)
    for name in ("cursors", "spill"):
        shutil.rmtree(directory / name, ignore_errors=True)
    (directory / LEFT).unlink(missing_ok=True)
