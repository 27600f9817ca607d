"""Servers for tests: a process on loopback ports that can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from tests.servers import LEASH, install_from_apt, unavailable

USER, PASSWORD = "penstock", "sec:r/et"


class Daemon:
    """A server in a directory of its own."""

    package: ClassVar[str]
    """The Debian package."""
    program: ClassVar[str]
    patience_s: ClassVar[float] = 20.0

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str]:
        """The command that runs it in the foreground."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {}

    def answers(self) -> bool:
        """Whether it takes requests; may raise whatever a client raises."""
        raise NotImplementedError

    @classmethod
    def prepare(cls) -> None:
        """Install the program if it is missing."""
        if not shutil.which(cls.program):
            install_from_apt(cls.package)
        if not shutil.which(cls.program):
            unavailable(f"no {cls.program} (Debian: sudo apt-get install -y {cls.package})")

    @classmethod
    @contextmanager
    def run(cls) -> Iterator[Self]:
        """A running server; stopped at the end."""
        cls.prepare()
        home = Path(tempfile.mkdtemp(prefix=f"penstock-{cls.package}-"))
        made = cls(home)
        try:
            made.start()
            yield made
        finally:
            if made.process is not None and made.process.poll() is None:
                made.process.communicate(timeout=60)
            shutil.rmtree(home, ignore_errors=True)

    def start(self) -> None:
        """Start the server, or start it again with all that it had."""
        with (self.home / "log").open("ab") as output:
            self.process = subprocess.Popen(
                ["sh", "-c", LEASH.replace("-INT", "-TERM"), "sh", self.home, *self.command()],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | dict(self.environment()),
                cwd=self.home,
            )
        until = time.monotonic() + self.patience_s
        while not self._is_up():
            if self.process.poll() is not None or time.monotonic() > until:
                unavailable(f"{self.program} did not start: {(self.home / 'log').read_text()[-3000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server as a crash would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def accepts(self, port: int) -> bool:
        """Whether a loopback port accepts connections; raises if it does not."""
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True

    def _is_up(self) -> bool:
        try:
            return self.answers()
        except Exception:  # each client has errors of its own
            return False


def certify(home: Path) -> tuple[Path, Path]:
    """A key for 127.0.0.1, and its certificate, which clients have to trust."""
    key, certificate = home / "server.key", home / "server.pem"
    if not key.exists():
        command = [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        key.chmod(0o644)  # the server may run as another user
    return key, certificate
