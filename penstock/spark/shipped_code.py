"""Penstock's code, which Spark sends to executors without Penstock, or with another version."""

from __future__ import annotations

import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT_OUT = ("ui", "__pycache__")
"""Directories of the package that an executor does not need."""


def ship(spark: SparkSession, directory: Path) -> None:
    """Make the Penstock version of this process available to all Python processes of a session."""
    directory.mkdir(parents=True, exist_ok=True)
    spark.sparkContext.addPyFile(str(make_archive(directory / f"penstock-{penstock.__version__}.zip")))


def make_archive(target: Path) -> Path:
    """Write the installed package to an archive that Python can import from."""
    package = Path(penstock.__file__).parent
    installed = distribution("penstock")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in sorted(package.rglob("*")):
            inside = path.relative_to(package)
            if path.is_file() and not set(LEFT_OUT) & set(inside.parts):
                archive.write(path, f"penstock/{inside}")
        for name in ("METADATA", "entry_points.txt"):
            archive.writestr(
                f"penstock-{installed.version}.dist-info/{name}", installed.read_text(name) or ""
            )
    return target
