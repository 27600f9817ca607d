"""Kills writers of a stream again and again, and has what is left looked at: `python -m … PLAN`.

A process of its own, which imports everything once and forks the others: hundreds of kills take seconds.
PLAN is JSON: {directory, seed, lives: [{kills, spec, memory, idempotent, drop_tail, steps}]}.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import structlog

from penstock.streams.files import Files
from penstock.streams.frames import decode_body, encode_body
from tests.forks import fork
from tests.streams.crash.obligations import Obligations, Pipe, recorded
from tests.streams.crash.processes import Deadly, check, write_for_ever
from tests.streams.kit import make_stream, raw

WRITERS = ("a", "b", "c")
PATIENCE_S = 3.0
"""How long a step may take to be reached; it ends by a kill anyway."""


class Life:
    """One stream, and its writers, who die."""

    def __init__(self, directory: Path, plan: dict[str, Any], seed: int) -> None:
        self._plan, self._rng = plan, random.Random(seed)
        self._stream, self._told = directory / "stream", directory / "told"
        memory = directory / "memory" if plan["memory"] else None
        directory.mkdir(parents=True)
        make_stream(self._stream, memory=memory, **plan["spec"])
        self.kills = 0

    def run(self) -> list[str]:
        """Live until there were enough kills; the steps at which writers ended themselves."""
        for step in self._plan["steps"]:
            self._round(step)
        while self.kills < self._plan["kills"]:
            self._round(None)
        return Obligations.load(self._told).died_at

    def _round(self, step: str | None) -> None:
        """Writers start, and die; then somebody looks at what they have left."""
        if step == "recovery" or (self._plan["drop_tail"] and self._rng.random() < 0.3):
            (self._stream / "tail").unlink(missing_ok=True)
        told = Obligations.load(self._told)
        with recorded(self._told) as pipe:
            pids: list[int] = []
            for writer in self._rng.sample(WRITERS, self._rng.choice((1, 2, 3))):
                # One of them dies where it is told to; the others learn of it by going on.
                nth = 1 if step == "recovery" else self._rng.randint(1, 3)
                files = Deadly(pipe, step, nth) if step and not pids else Files()
                pids.append(self._start(writer, told, pipe, files))
            if step:
                _await_death(pids[0])
            time.sleep(self._rng.uniform(0.01, 0.04))
            for pid in pids:
                self._kill(pid)
                time.sleep(self._rng.uniform(0, 0.01))
        told = Obligations.load(self._told)
        with recorded(self._told) as pipe:
            in_order = not self._plan["idempotent"]
            checker = fork(lambda: check(self._stream, told, pipe, in_order=in_order))
            assert os.waitpid(checker, 0)[1] == 0, f"a fault in {self._stream}: {self._plan}"

    def _start(self, writer: str, told: Obligations, pipe: Pipe, files: Files) -> int:
        idempotent = self._plan["idempotent"]
        start = told.next_batch(writer, again=idempotent)
        return fork(lambda: write_for_ever(self._stream, writer, start, pipe, files, idempotent=idempotent))

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        assert os.WIFSIGNALED(status), f"a writer failed by itself, with {status}"
        self.kills += 1


def _await_death(pid: int) -> None:
    """Wait until a process has ended itself, but not for ever. It is not reaped."""
    deadline = time.monotonic() + PATIENCE_S
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while time.monotonic() < deadline and os.waitid(os.P_PID, pid, options) is None:
        time.sleep(0.002)


def main() -> None:
    """Run the campaign of the command line."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    decode_body(encode_body(raw([b""]), "zstd").data)  # imports what Arrow imports late
    plan = json.loads(sys.argv[1])
    kills, died_at = 0, set[str]()
    for number, life in enumerate(plan["lives"]):
        one = Life(Path(plan["directory"]) / str(number), life, plan["seed"] + number)
        died_at.update(one.run())
        kills += one.kills
    print(json.dumps({"kills": kills, "died_at": sorted(died_at)}))


if __name__ == "__main__":
    main()
