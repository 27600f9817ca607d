"""A small process alongside a worker that ends the processes which the worker can no longer end itself.

A worker ends its JVM, and Spark's Python processes end with the JVM. This fails if the worker was killed
while the JVM hangs, or if the worker itself hangs after `penstock up` was killed. All of them are in the
session of the worker, whatever process groups they create. Runs as a script with `-I -S`: it imports little,
and is small.
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
"""Seconds in which a JVM may remove its temporary files after its worker has ended, before it is killed."""

STOPPING_S = 20.0
"""Seconds beyond the drain timeout that a worker may take to end; `penstock up` kills it before that."""

KILLED_S = 2.0
"""Seconds for which killed processes may remain in the kernel."""

LOOK_S = 0.05


def start_guard(drain_s: float) -> None:
    """Start the guard of this process, which is a session leader with a pipe of its parent as its input.

    The guard detects the end of this process, and that of the parent, by the closing of their pipes.
    """
    read, write = os.pipe()  # the write end stays open until this process ends
    subprocess.Popen(
        [sys.executable, "-IS", __file__, str(os.getpid()), str(read), str(drain_s)],
        stdin=0,
        pass_fds=[read],
        process_group=0,  # a signal that stops the worker's process group must not stop its guard
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
    """Like `members`, on a system without `/proc`."""
    shown = subprocess.run(["ps", "-axo", "pid=,stat="], capture_output=True, text=True).stdout
    found = []
    for line in shown.splitlines():
        pid, state = line.split()[:2]
        with contextlib.suppress(OSError):
            if not state.startswith("Z") and os.getsid(int(pid)) == session:
                found.append(int(pid))
    return found


def end_session(session: int, grace_s: float = 0.0, but: int | None = None) -> bool:
    """Kill all processes of a session except `but`, after `grace_s`; true if none is alive afterwards."""
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
    """End a session after its worker, or the parent of the worker, has ended.

    `worker` is the read end of a pipe that the worker keeps open; standard input is the pipe of the parent.
    """
    poll = select.poll()
    poll.register(0, 0)  # no events, only the closing of the other end
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
