"""The Java that Spark will run on."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from penstock.errors import PenstockError, Problem

JAVA_NEEDED = 17

JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables from which every JVM reads options."""


def require_java() -> None:
    """Raise an error with an installation command if the machine has no suitable Java."""
    found = _major(java_release())
    if found is not None and found >= JAVA_NEEDED:
        return
    what = f"Java {found}" if found else "no Java"
    raise PenstockError(
        Problem(
            code="no_java",
            message=f"Spark needs Java {JAVA_NEEDED} or newer; found {what}",
            hint="Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
            "Windows: winget install EclipseAdoptium.Temurin.17.JRE",
        )
    )


def java_release() -> str | None:
    """The version and build of the Java that Spark will use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return _release(java) if java else None


def collector_chosen() -> bool:
    """Whether the environment selects a garbage collector: Java does not start with two."""
    return any("-XX:+Use" in os.environ.get(name, "") for name in JAVA_VARIABLES)


def _release(java: str) -> str | None:
    with contextlib.suppress(OSError, IndexError, UnicodeDecodeError):
        release = (Path(java).resolve(strict=True).parents[1] / "release").read_text(encoding="utf-8")
        if _major(release) is not None and os.access(java, os.X_OK):
            return release  # much faster than starting a JVM
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None


def _major(release: str | None) -> int | None:
    match = re.search(r'(?:version |JAVA_VERSION=)"(?:1\.)?(\d+)', release or "")
    return int(match.group(1)) if match else None
