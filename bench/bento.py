"""Bento, if it is installed: `bento` on the PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.file_jobs import Command

JOBS = Path(__file__).parent / "jobs"


def installed() -> bool:
    """Whether Bento is installed on this machine."""
    return shutil.which("bento") is not None


def command(config: str, source: Path) -> Command:
    """The command that runs a configuration of `bench/jobs` on the files of a directory."""
    return lambda target: [
        "env", f"SOURCE={source}/part-*.json", f"TARGET={target}/out.json", "bento", "-c", str(JOBS / config)
    ]  # fmt: skip
