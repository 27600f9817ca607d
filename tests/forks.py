"""Copies of the process of a test. They have all that is imported already, so they are there at once."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def fork(work: Callable[[], object]) -> int:
    """Run something in a copy of this process, which ends with it and in any case; the id of the copy.

    Locks that other threads hold at that moment stay locked in the copy: nothing that runs in the background
    of the tests may use what the copy uses, such as SQLite.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if (pid := os.fork()) != 0:
        return pid
    status = 1
    try:
        # A copy that outlives a process of tests would keep its pipes open, and the run would wait for ever.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            work()
            status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def status_of(pid: int) -> int:
    """The status with which a copy has ended, as `os.waitpid` has it."""
    return os.waitpid(pid, 0)[1]
