"""An S3 server for tests: versitygw on a directory, built by Go into the cache of the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.daemon import Daemon
from tests.java import CACHE
from tests.servers import free_port, unavailable

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
USER, PASSWORD = "penstock", "not-to-be-shown"
REGION = "us-east-1"

BUILT = CACHE / f"versitygw-{VERSION}" / "versitygw"


class S3(Daemon):
    """A running server."""

    package = program = "versitygw"
    patience_s = 30.0

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port = free_port()
        for name in ("data", "meta"):
            (home / name).mkdir()

    @classmethod
    def prepare(cls) -> None:
        if BUILT.exists() or shutil.which(cls.program):
            return
        if not shutil.which("go"):
            unavailable("no Go to build an S3 server with (Debian: sudo apt-get install -y golang)")
        part = BUILT.parent.with_suffix(f".{os.getpid()}")
        command = ["go", "install", "-p", "2", f"{MODULE}@{VERSION}"]
        env = os.environ | {"GOBIN": str(part), "CGO_ENABLED": "0"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"Go could not build an S3 server: {done.stderr[-2000:]}")
        BUILT.parent.mkdir(parents=True, exist_ok=True)
        (part / cls.program).replace(BUILT)
        part.rmdir()

    def command(self) -> Sequence[str]:
        return [
            shutil.which(self.program) or str(BUILT), "--port", f"127.0.0.1:{self.port}", "--access", USER,
            "--secret", PASSWORD, "--region", REGION, "--quiet", "posix", "--sidecar",
            str(self.home / "meta"), str(self.home / "data"),
        ]  # fmt: skip

    def answers(self) -> bool:
        return self.accepts(self.port)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def access(self) -> dict[str, str]:
        """The field `store` of a `file` connector."""
        return {"endpoint": self.url, "region": REGION, "access_key": USER, "secret_key": PASSWORD}

    def bucket(self) -> str:
        """A new bucket."""
        name = f"b-{uuid.uuid4().hex[:12]}"
        self.path(name).mkdir()
        return name

    def path(self, bucket: str) -> Path:
        """The directory with the objects of a bucket."""
        return self.home / "data" / bucket
