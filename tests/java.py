"""Java for tests: most of its processes live for seconds, so it has to be quick to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiling well and collecting garbage in several threads are not worth it."""

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""The classes of Spark as a JVM has them in memory: with them it starts in half the time."""


@cache
def quick_java() -> str:
    """The value of JAVA_TOOL_OPTIONS for a process of a test."""
    if not ARCHIVE.exists() or " " in str(ARCHIVE):
        return QUICK
    # A JVM that does not run Spark cannot use it, and would print that where a command is expected.
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"


def make_archive() -> None:
    """Make the archive, unless this Java has made it of this Spark."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return  # which tests of Spark tell
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    made_of, stamp = f"{pyspark.__version__}\n{version}", ARCHIVE.with_suffix(".ready")
    if stamp.exists() and stamp.read_text() == made_of:
        return
    print("preparing Java for the tests; this is done once", file=sys.stderr)
    stamp.unlink(missing_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.java"]
    env = {**os.environ, "JAVA_TOOL_OPTIONS": QUICK}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        stamp.write_text(made_of)
    else:
        print(f"they go on without:\n{done.stdout}{done.stderr}", file=sys.stderr)


def _make() -> None:
    """Run a small query in a JVM that leaves the archive behind when it ends."""
    from penstock.engine.session import open_session
    from penstock.settings import load

    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        options = f"-XX:ArchiveClassesAtExit={ARCHIVE}"
        overrides = {"home": home, "spark.driver.extraJavaOptions": options}
        spark = open_session(load(overrides, env={}, cwd=home).settings)
        rows = spark.readStream.format("rate").load().selectExpr("value", "value * 2 AS twice")
        writer = rows.writeStream.foreachBatch(lambda batch, _: batch.write.json(str(home / "out"), "append"))
        query = writer.option("checkpointLocation", str(home / "checkpoint")).start()
        query.processAllAvailable()
        query.stop()
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(300)
    assert ARCHIVE.exists()


if __name__ == "__main__":
    _make()
