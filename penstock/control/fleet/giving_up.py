"""Immediate exit of a worker that can't continue, with all its processes."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

import psutil
import structlog

if TYPE_CHECKING:
    from penstock.control.fleet.worker import Worker

log = structlog.get_logger()

KILLED_S, LEAVE_S = 2.0, 3.0
"""Seconds to wait for killed processes to end, and for the registry."""

FAILED = 1


def give_up(worker: Worker, reason: str) -> NoReturn:
    """Kill all processes of this worker, release its flows, and exit this process.

    The JVM is killed first: only the JVM could still write for a flow that is assigned to another worker.
    """
    log.error("the worker ends", worker=worker.id, reason=reason)
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.kill()
    _, left = psutil.wait_procs(children, KILLED_S)
    if not left:  # otherwise the lease expires on its own
        thread = threading.Thread(target=worker.leave, daemon=True)
        thread.start()
        thread.join(LEAVE_S)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)
