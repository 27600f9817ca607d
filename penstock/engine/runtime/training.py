"""Creates a class archive: `python -m penstock.engine.runtime.training FILE`.

Runs small flows in a JVM that writes all loaded classes to the archive when it exits.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil

from penstock.engine.runtime.session import open_session
from penstock.engine.runtime.warmup import STREAM, warm_up
from penstock.settings import load
from penstock.spark.archive import ClassArchive
from penstock.spark.driver import end

LOWEST_PRIORITY = 19
EXIT_S = 300.0
"""Seconds that the JVM may take to write the archive."""


def main() -> None:
    """Create the archive that is named on the command line, unless another process is creating it."""
    archive = ClassArchive(Path(sys.argv[1]))
    os.nice(LOWEST_PRIORITY)
    if sys.platform == "linux":
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
    with archive.path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not archive.ready:
            make(archive)
            archive.remove_unused()


def make(archive: ClassArchive) -> None:
    """Create an archive. It appears under its name when it is complete."""
    with tempfile.TemporaryDirectory(dir=archive.path.parent) as scratch:
        directory, made = Path(scratch), Path(scratch) / "classes.jsa"
        option = f"-XX:ArchiveClassesAtExit={made} -Xlog:disable -Xlog:all=error:stderr"
        overrides = {"home": directory, "class_archive": False, "spark.driver.extraJavaOptions": option}
        spark = open_session(load(overrides, env={}, cwd=directory).settings)
        warm_up(spark, directory, specs(directory))
        end(spark, EXIT_S)  # a normal exit: only then it writes the archive
        made.replace(archive.path)


def specs(directory: Path) -> list[dict[str, Any]]:
    """Pipelines with the most common components: streams, files, SQL, windows and scripts."""
    source = directory / "events.json"
    source.write_text('{"id": 1, "text": "one", "at": "2024-01-01T00:00:00Z"}\n')
    files = {
        "source": {"type": "file", "path": str(source), "format": "json", "finite": True},
        "processors": [{"type": "sql", "query": "SELECT id, upper(text) AS text FROM input WHERE id > 0"}],
        "sinks": [{"type": "file", "path": str(directory / "out"), "format": "json"}],
    }
    window = {
        **STREAM,
        "processors": [{"type": "window", "time": "system", "size": "1s", "aggregates": {"n": "count(*)"}}],
        "sinks": [{"type": "drop"}],
    }
    script = "function processBatch(events) { return events }"
    javascript = {**STREAM, "processors": [{"type": "javascript", "inline": script}]}
    return [STREAM, files, window, javascript]


if __name__ == "__main__":
    main()
