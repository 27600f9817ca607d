"""The cluster of a drill: a server and workers, real processes with their own home."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.cli.client import Client
from penstock.cli.drill.proxy import Proxy
from penstock.errors import PenstockError, Problem
from penstock.policy import Policy
from penstock.settings import Settings

START_S = 300.0
"""Seconds that a server or a worker may take to start: several JVMs at once are slow on a small machine."""

END_S = 30.0

MOST_FAILED_STARTS = 3
"""Consecutive failed starts of a worker before the drill fails; on a busy machine, starts may time out."""

POLL_S = 0.1

WORKER_SETTINGS = ("lease_ms", "heartbeat_ms", "drain_ms", "starts")
OTHER_SETTINGS = ("allow_python", "class_archive")


class Interrupted(Exception):
    """The user has interrupted the drill."""


@dataclass
class Member:
    """A worker of the cluster; a restart gives it a new process."""

    number: int
    proxy: Proxy
    process: subprocess.Popen[bytes]
    id: str
    """The id under which the current process registers."""
    frozen: bool = False
    failed_starts: int = 0
    """Consecutive processes that have ended before they were ready."""
    retired: bool = False
    """Whether the worker is no longer restarted."""

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None


class Cluster:
    """Starts and stops processes, and injects faults into workers. All files are below `root`."""

    def __init__(self, root: Path, settings: Settings, workers: int, stopped: Callable[[], bool]) -> None:
        self.root, self._settings, self._number, self.stopped = root, settings, workers, stopped
        self.members: list[Member] = []
        self._server: subprocess.Popen[str] | None = None
        self._token = ""
        self.lease_s = settings.worker.lease_ms / 1000

    def start(self) -> Client:
        """Start the server and all workers; returns a client of the server when all workers are ready."""
        for name in ("logs", "server", "work"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "penstock.toml").write_text(settings_file(self._settings, self.root), encoding="utf-8")
        url = self._start_server()
        self._token = self._make_token()
        self.client = Client(url)
        target = urlsplit(url)
        assert target.hostname is not None
        assert target.port is not None
        for number in range(1, self._number + 1):
            proxy = Proxy((target.hostname, target.port))
            self.members.append(Member(number, proxy, *self._spawn(number, proxy)))
        self.wait(lambda: len(self.ready()) == self._number, "the workers to start", START_S)
        return self.client

    def stop(self) -> None:
        """End all processes."""
        for member in self.members:
            self.thaw(member)
            member.proxy.heal()
            if member.process.stdin is not None:
                with contextlib.suppress(OSError):
                    member.process.stdin.close()  # its leash: the worker shuts down cleanly
        deadline = time.monotonic() + END_S
        for member in self.members:
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(max(0.1, deadline - time.monotonic()))
            self._end_group(member.process.pid)
            member.process.wait()
            member.proxy.close()
        if self._server is not None:
            self._server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(END_S)
            self._server.kill()
            self._server.wait()
            for pipe in (self._server.stdin, self._server.stdout):
                if pipe is not None:
                    pipe.close()

    def ready(self) -> list[Member]:
        """The workers that accept flows."""
        known = {each["id"] for each in self.registered() if each["alive"] and each["state"] == "ready"}
        found = [member for member in self.members if member.id in known and not member.ended]
        for member in found:
            member.failed_starts = -1  # the end of this process doesn't count as a failed start
        return found

    def registered(self) -> list[dict[str, Any]]:
        """The workers as the server sees them."""
        return list(self.client.call("GET", "/workers"))

    def pipelines(self) -> dict[str, dict[str, Any]]:
        """The pipelines of the server, by id."""
        return {each["id"]: each for each in self.client.list("Pipeline")["items"]}

    def kill(self, member: Member) -> None:
        """Kill a worker with SIGKILL."""
        member.process.kill()
        member.process.wait()

    def freeze(self, member: Member) -> None:
        """Suspend a worker and its JVM with SIGSTOP."""
        os.killpg(member.process.pid, signal.SIGSTOP)
        member.frozen = True

    def thaw(self, member: Member) -> None:
        """Resume a frozen worker."""
        if member.frozen:
            member.frozen = False
            with contextlib.suppress(ProcessLookupError):
                os.killpg(member.process.pid, signal.SIGCONT)

    def restart(self, member: Member) -> None:
        """Restart a worker, after killing all processes left by its last run."""
        self._end_group(member.process.pid)
        member.process.wait()
        member.process, member.id = self._spawn(member.number, member.proxy)

    def wait(self, done: Callable[[], Any], what: str, seconds: float) -> None:
        """Wait until `done`; Interrupted if the user interrupts the drill, an error after a timeout.

        Workers that have ended are restarted: on a busy machine a worker may lose its lease without a fault.
        """
        deadline = time.monotonic() + seconds
        while not done():
            if self.stopped():
                raise Interrupted
            self._require_server()
            for member in self.members:
                if member.ended and not member.retired:
                    self._require_start(member)
                    self.restart(member)
            if time.monotonic() > deadline:
                message = f"timed out after {seconds:.0f} s waiting for {what}"
                hint = f"check the logs in {self.root / 'logs'}; --dir keeps them"
                raise PenstockError(Problem(code="drill_stuck", message=message, hint=hint))
            time.sleep(POLL_S)

    def _start_server(self) -> str:
        command = [
            sys.executable,
            "-m",
            "penstock.cli.main",
            "up",
            "--leash",
            "--workers",
            "0",
            "--port",
            "0",
        ]
        with (self.root / "logs" / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--home", str(self.root / "server")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.root,
                env=self._environment(),
                start_new_session=True,
            )
        assert self._server.stdout is not None
        found = re.search(r"http://\S+", self._server.stdout.readline())
        if found is None:
            self._require_server(START_S)
        assert found is not None
        return found.group()

    def _require_server(self, patience_s: float = 0.0) -> None:
        assert self._server is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._server.wait(patience_s)
            text = (self.root / "logs" / "server.log").read_text("utf-8", "replace").strip()
            message = f"the server of the drill exited with code {code}: {text[-500:]}"
            raise PenstockError(Problem(code="drill_server", message=message))

    def _require_start(self, member: Member) -> None:
        """Raise an error if a worker has repeatedly ended before it was ready."""
        member.failed_starts += 1
        if member.failed_starts >= MOST_FAILED_STARTS:
            text = (self.root / "logs" / f"worker-{member.number}.log").read_text("utf-8", "replace").strip()
            message = f"worker {member.number} of the drill failed to start: {text[-500:]}"
            hint = "if the server was too slow to respond, raise --lease-ms"
            raise PenstockError(Problem(code="drill_worker", message=message, hint=hint))

    def _make_token(self) -> str:
        from penstock.control.registry import Registry
        from penstock.control.wire.tokens import Tokens

        registry = Registry.open(f"sqlite:///{self.root / 'server' / 'registry.db'}")
        try:
            return Tokens(registry).make("drill")
        finally:
            registry.close()

    def _spawn(self, number: int, proxy: Proxy) -> tuple[subprocess.Popen[bytes], str]:
        worker = str(uuid.uuid4())
        command = [sys.executable, "-m", "penstock.cli.main", "worker", "--leash", "--id", worker]
        with (self.root / "logs" / f"worker-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--server", proxy.url, "--home", str(self.root / "work")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env=self._environment() | {"PENSTOCK_WORKER_TOKEN": self._token},
                start_new_session=True,
            )
        return process, worker

    def _environment(self) -> dict[str, str]:
        """The environment without settings: the settings of the drill are in a file."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return {**kept, "PYTHONUNBUFFERED": "1"}

    def _end_group(self, group: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def settings_file(settings: Settings, root: Path) -> str:
    """The settings of the cluster as TOML: the user's settings for how flows run, without any locations.

    The registry, storage and port of the user's own installation must not be affected.
    """
    lines = [f"{name} = {json.dumps(getattr(settings, name))}" for name in OTHER_SETTINGS]
    lines.append(f"cache = {json.dumps(str(settings.cache_directory))}")
    lines.append("[worker]")
    given = {name: getattr(settings.worker, name) for name in WORKER_SETTINGS}
    lines += [f"{name} = {json.dumps(value)}" for name, value in given.items() if value is not None]
    if settings.spark.get("spark.master", "local").startswith("local") is False:
        lines += ["[storage]", f"shared = [{json.dumps(str(root))}]"]
    lines.append("[policy]")
    allowed = {**settings.policy.model_dump(), "paths": [str(root), *(Policy.of(settings).paths.roots or ())]}
    lines += [f"{name} = {json.dumps(value)}" for name, value in allowed.items()]
    lines.append("[spark]")
    lines += [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in settings.spark.items()]
    return "\n".join(lines) + "\n"
