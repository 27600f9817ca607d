"""Shutdown requests: Ctrl-C and SIGTERM, the second of which exits immediately, and the parent's end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

INTERRUPTED = 130

Leash = Annotated[
    bool,
    typer.Option("--leash", help="Exit when standard input closes, such as when the parent process dies."),
]


def on_stop(stop: Callable[[], None]) -> None:
    """Call `stop` on Ctrl-C or SIGTERM. Replaces Spark's signal handlers, so call this after Spark starts."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)
        asked = True
        stop()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def on_parent_end(stop: Callable[[], None]) -> None:
    """Call `stop` when standard input, a pipe from the parent process, closes."""

    def watch() -> None:
        while sys.stdin.buffer.read(1024):
            pass
        stop()

    threading.Thread(target=watch, name="leash", daemon=True).start()
