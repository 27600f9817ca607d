"""A small process beside a worker: it ends the processes that the worker can no longer end itself.

A worker ends its JVM, and Spark's Python processes end with the JVM. Not so if the worker was killed while
the JVM hangs, or if the worker itself hangs after `penstock up` was killed. All of them are in the session of
the worker, whatever process groups they make. Run as a script with `-I -S`: it imports little, and is small.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

ENDING_S = 3.0
"""Seconds in which a JVM whose worker has ended removes its temporary files before it is killed."""

STOPPING_S = 20.0
"""Seconds beyond the drain timeout that a worker may take to end; `penstock up` kills it before that."""

KILLED_S = 2.0
"""Seconds for which killed processes may linger in the kernel."""

LOOK_S = 0.05


def start_guard(drain_s: float) -> None:
    """Start the guard of this process, which leads its session and has a pipe of its parent as its input.

    The guard notices the end of this process, and with it that of the parent, by pipes that close.
    """
    read, write = os.pipe()  # the other end stays open as long as this process lives
    subprocess.Popen(
        [sys.executable, "-IS", __file__, str(os.getpid()), str(read), str(drain_s)],
        stdin=0,
        pass_fds=[read],
        process_group=0,  # what freezes the process group of the worker must not freeze its guard
    )
    os.close(read)
    _KEPT.append(write)


_KEPT: list[int] = []


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    if not os.path.isdir("/proc/self"):
        return _members_elsewhere(session)
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, _, _, leader = file.read().rpartition(b")")[2].split()[:4]
                if int(leader) == session and state not in (b"Z", b"X"):
                    found.append(int(name))
    return found


def _members_elsewhere(session: int) -> list[int]:
    """As `members`, on a system without `/proc`."""
    shown = subprocess.run(["ps", "-axo", "pid=,stat="], capture_output=True, text=True).stdout
    found = []
    for line in shown.splitlines():
        pid, state = line.split()[:2]
        with contextlib.suppress(OSError):
            if not state.startswith("Z") and os.getsid(int(pid)) == session:
                found.append(int(pid))
    return found


def end_session(session: int, grace_s: float = 0.0, but: int | None = None) -> bool:
    """Kill all processes of a session except `but`, after `grace_s`; true if none is alive any more."""
    begun = time.monotonic()
    while left := [pid for pid in members(session) if pid != but]:
        passed = time.monotonic() - begun
        if passed > grace_s + KILLED_S:
            return False
        if passed >= grace_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)
    return True


def watch(session: int, worker: int, drain_s: float) -> None:
    """End a session in time after its worker or the parent of the worker has ended.

    `worker` is the read end of a pipe that the worker keeps open; standard input is that of the parent.
    """
    poll = select.poll()
    poll.register(0, 0)  # no event: only that the other end was closed
    poll.register(worker, 0)
    ready = {descriptor for descriptor, _ in poll.poll()}
    if worker not in ready:
        poll.unregister(0)
        poll.poll((drain_s + STOPPING_S) * 1000)
    end_session(session, ENDING_S, but=os.getpid())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    watch(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
