"""The process with V8, from the perspective of the task that uses it."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field

from penstock.frames.faults import Fault
from penstock.processors.base import Refused
from penstock.specs.base import Spec

Columns = Sequence[tuple[str, Any]]
"""The names and shapes of columns; see `prelude.js`."""

META = "$meta"
CHILD = Path(__file__).with_name("child.py")
START_SECONDS = 60.0
"""Seconds for a process to start, even on a busy machine."""
GRACE_SECONDS = 1.0
"""Seconds after a limit until V8's process is killed, since V8 can't interrupt some of its own functions."""
KEPT = 4
"""Processes kept for the scripts used last. A Python worker of Spark serves several flows in turn."""


class Limits(Spec):
    """The limits of one call of `processBatch`."""

    cpu_ms: int = Field(default=500, ge=1, description="Processor time, in milliseconds.")
    mem_mb: int = Field(default=128, ge=16, description="Memory of V8, in MiB.")
    timeout_ms: int = Field(default=2000, ge=1, description="Wall-clock time, in milliseconds.")


@dataclass(frozen=True)
class Program:
    """A script with everything it needs, as it is sent to the tasks."""

    text: bytes
    """The message that the process with V8 reads."""
    limits: Limits
    meta: bool
    """Whether the script uses `$meta`, which is passed only in this case."""


def make_program(
    sources: Sequence[tuple[str, str]], given: Columns, made: Columns, sinks: Sequence[str], limits: Limits
) -> Program:
    """Create a program from the names and texts of a script and its modules, and its columns."""
    meta = any(META in text for _, text in sources)
    whole = {
        "sources": sources,
        "input": given,
        "output": made,
        "meta": meta,
        "sinks": sinks,
        "limits": limits.model_dump(),
    }
    return Program(orjson.dumps(whole), limits, meta)


class Unloadable(Exception):
    """A script that can't be loaded: the index of the source, and the reason."""

    def __init__(self, source: int, message: str) -> None:
        super().__init__(source, message)
        self.source, self.message = source, message


class _Crashed(Exception):
    """The process exited on its own, with this status."""


class Sandbox:
    """A script that waits for batches. Used by one thread."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.limits = program.limits
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False

    def open(self) -> None:
        """Start the process, unless it is running. Raises `Unloadable`."""
        if self.process is not None and not self.ready and not self._renewed():
            self.close()
        if self.process is None:
            self._start()

    def run(self, batch: bytes) -> dict[str, Any]:
        """The output of the script for a batch. Raises `Refused` if it reaches a limit."""
        try:
            answer = self._ask(batch)
        except _Crashed:
            try:  # the same batch in a new process shows whether the script is the cause
                answer = self._ask(batch)
            except _Crashed as crash:
                message = f"the script ran out of memory and V8 exited (status {crash.args[0]})"
                raise Refused("js_memory_limit", message) from None
        if "rows" not in answer and "message" not in answer:
            self.ready = False
            raise Refused(answer["code"], self._reached(answer["code"]))
        return answer

    def close(self) -> None:
        """End the process."""
        process, self.process, self.ready = self.process, None, False
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> None:
        # The environment may contain secrets, and a script needs none of it.
        env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # As a file: the package takes longer to load. On an executor of a cluster it is in an archive.
        program = [str(CHILD)] if CHILD.exists() else ["-m", "penstock.processors.js.child"]
        command = [sys.executable, "-P", *program]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=nowhere)
        self.poll = select.poll()
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()
        self.poll.register(self.output, select.POLLIN)
        try:
            self._send(self.program.text)
            self._loaded(self._receive(START_SECONDS))
        except (_Crashed, TimeoutError):
            self.close()
            raise Fault("js_engine", "the process with V8 did not start") from None

    def _renewed(self) -> bool:
        """Whether there is a new context after a limit was reached."""
        try:
            self._loaded(self._receive(GRACE_SECONDS))
        except (_Crashed, TimeoutError):
            return False
        return True

    def _loaded(self, answer: dict[str, Any]) -> None:
        if "ready" not in answer:
            self.close()
            raise Unloadable(answer["source"], answer["message"])
        self.ready = True

    def _ask(self, batch: bytes) -> dict[str, Any]:
        self.open()
        try:
            self._send(batch)
            return self._receive(self.limits.timeout_ms / 1000 + GRACE_SECONDS)
        except TimeoutError:
            self.close()
            return {"code": "js_timeout"}
        except _Crashed:
            self.close()
            raise

    def _send(self, message: bytes) -> None:
        from penstock.processors.js.child import write

        assert self.process is not None
        assert self.process.stdin is not None
        try:
            write(self.process.stdin, message)
        except BrokenPipeError:
            raise _Crashed(self.process.wait()) from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        from penstock.processors.js.child import LENGTH

        deadline = time.monotonic() + seconds
        (length,) = LENGTH.unpack(self._read(LENGTH.size, deadline))
        answer: dict[str, Any] = orjson.loads(self._read(length, deadline))
        return answer

    def _read(self, size: int, deadline: float) -> bytearray:
        assert self.process is not None
        data = bytearray()
        while len(data) < size:
            if not self.poll.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise TimeoutError
            chunk = os.read(self.output, size - len(data))
            if not chunk:
                raise _Crashed(self.process.wait())
            data += chunk
        return data

    def _reached(self, code: str) -> str:
        limits = self.limits
        return {
            "js_cpu_limit": f"the batch took more than {limits.cpu_ms} ms of processor time (limits.cpu_ms)",
            "js_memory_limit": f"the batch took more than {limits.mem_mb} MiB of memory (limits.mem_mb)",
            "js_timeout": f"the batch took more than {limits.timeout_ms} ms (limits.timeout_ms)",
        }[code]


_SANDBOXES: OrderedDict[Program, Sandbox] = OrderedDict()


def sandbox_for(program: Program) -> Sandbox:
    """The sandbox of a program in this process, which may have processed batches of earlier tasks."""
    found = _SANDBOXES.pop(program, None) or Sandbox(program)
    _SANDBOXES[program] = found
    while len(_SANDBOXES) > KEPT:
        _SANDBOXES.popitem(last=False)[1].close()
    return found


def close_all() -> None:
    """End all processes."""
    while _SANDBOXES:
        _SANDBOXES.popitem()[1].close()


atexit.register(close_all)
