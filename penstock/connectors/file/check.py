"""The connection test of files: can the path be read, or written."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from penstock.connectors.file.paths import is_local, local_path
from penstock.connectors.file.storage import storage_for
from penstock.connectors.probe import Probe
from penstock.errors import Problem
from penstock.spark.driver import java_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFERED = 20
"""The most files that are named."""


def probe_reading(spark: SparkSession, path: str) -> Probe:
    """Whether there is something to read at a path, or in a directory, or for a glob."""
    if not is_local(path):
        return _probe_url(spark, path)
    found = sorted(glob.glob(local_path(path)))
    if not found:
        hint = "check the path; it is one of the worker's machine"
        return _problem("path_not_found", f"there is nothing at '{path}'", hint)
    refused = [each for each in found if not os.access(each, os.R_OK)]
    if refused:
        return _problem("path_not_readable", f"the worker may not read '{refused[0]}'")
    files = [each for each in found if os.path.isfile(each)]
    for directory in (each for each in found if os.path.isdir(each)):
        files += [entry.path for entry in os.scandir(directory) if entry.is_file()]
    return Probe(offers={"files": sorted(files)[:OFFERED]})


def probe_writing(spark: SparkSession, path: str) -> Probe:
    """Whether a directory can be written, or made."""
    if not is_local(path):
        return _probe_url(spark, path, must_exist=False)
    nearest = local_path(path)
    while not os.path.exists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        return _problem("not_a_directory", f"'{nearest}' is a file, not a directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return _problem("path_not_writable", f"the worker may not write into '{nearest}'")
    return Probe()


def _probe_url(spark: SparkSession, path: str, *, must_exist: bool = True) -> Probe:
    if glob.has_magic(path):
        return Probe(checked=False)
    try:
        exists = storage_for(path, spark).exists(path)
    except java_errors() as error:
        return _problem("path_not_readable", f"'{path}' cannot be reached: {str(error).splitlines()[0]}")
    return (
        Probe() if exists or not must_exist else _problem("path_not_found", f"there is nothing at '{path}'")
    )


def _problem(code: str, message: str, hint: str | None = None) -> Probe:
    return Probe(problems=[Problem(code=code, message=message, path="path", hint=hint)])
