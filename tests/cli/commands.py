"""The real command in real processes, in a directory and with a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.java import quick_environment

PATIENCE_S = 240
"""On a busy machine a JVM takes a minute to start, and there may be several of them."""


def quiet_environment() -> dict[str, str]:
    """This environment without what configures Penstock, and with a Java that is quick to start."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return {**quick_environment(), **kept}


@dataclass
class Penstock:
    """Runs `penstock` in one directory; what still runs at the end is killed."""

    directory: Path
    env: dict[str, str] = field(default_factory=quiet_environment)
    through: tuple[str, ...] = ()
    """A command that runs the command, such as `nice`."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.directory / ".penstock"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.through, sys.executable, "-m", "penstock.cli.main", *arguments],
            cwd=self.directory,
            env=self.env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    def kill_everything(self) -> None:
        for process in self.started:
            if process.poll() is None:
                family = family_of(process.pid)
                for member in family:
                    member.kill()
                process.wait()


def family_of(pid: int) -> list[psutil.Process]:
    """A process and all that it has started."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def wait_for(what: str, done: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    """The first true answer of `done`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := done():
            return answer
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def interrupt(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Signal a process; what it printed until it ended."""
    process.send_signal(number)
    return process.communicate(timeout=PATIENCE_S)


def completed(penstock: Penstock, line: str) -> str:
    """What the shell would be offered at the end of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("penstock"))],
        env={**penstock.env, **words, "_PENSTOCK_COMPLETE": "complete_bash"},
        cwd=penstock.directory,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stderr == ""
    return done.stdout.strip()
