"""Java for tests: most of its processes live for seconds, so it has to be quick to start."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from penstock.settings import load
from penstock.spark.archive import MAKER, ClassArchive

ROOT = Path(__file__).parents[1]

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiling well and collecting garbage on all cores are not worth it."""

CACHE = Path(sys.prefix) / "cache"
"""Where the class archive of tests is, apart from that of the user who runs them."""


@cache
def archive() -> ClassArchive:
    """The class archive of all JVMs of tests."""
    found = ClassArchive.of(load({"cache": CACHE}, env={}).settings)
    assert found is not None, "there is no Java, or the environment's path has a space in it"
    return found


def make_archive() -> None:
    """Make the archive, unless this Java has made it of this Spark."""
    if archive().ready:
        return
    print("preparing Java for the tests (once, about half a minute)", file=sys.stderr, flush=True)
    env = {**os.environ, "JAVA_TOOL_OPTIONS": QUICK}
    command = [sys.executable, "-m", MAKER, str(archive().path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if not archive().ready:
        print(f"they go on without:\n{done.stdout}{done.stderr}", file=sys.stderr)


def quick_environment() -> dict[str, str]:
    """What lets the processes of a test start fast: the archive and quick options of Java."""
    return {"JAVA_TOOL_OPTIONS": QUICK, "PENSTOCK_CACHE": str(CACHE)}
