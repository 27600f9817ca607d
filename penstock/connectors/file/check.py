"""The connection test of files: whether the path can be read or written."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from penstock.connectors.file.paths import is_local, local_path
from penstock.connectors.file.storage import storage_for
from penstock.connectors.file.store import Store, explained, hadoop_options, unanswered
from penstock.connectors.probe import Probe
from penstock.errors import PenstockError, Problem
from penstock.spark.driver import error_text, java_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFERED = 20
"""Maximum number of files in the result of a connection test."""


def probe_reading(spark: SparkSession, path: str, store: Store | None = None) -> Probe:
    """Test whether a file, a directory or a glob can be read, and list its files."""
    if not is_local(path):
        return _probe_url(spark, path, store)
    found = sorted(glob.glob(local_path(path)))
    if not found:
        hint = "check the path on the machine of the worker"
        return _problem("path_not_found", f"nothing found at '{path}'", hint)
    refused = [each for each in found if not os.access(each, os.R_OK)]
    if refused:
        return _problem("path_not_readable", f"the worker has no permission to read '{refused[0]}'")
    files = [each for each in found if os.path.isfile(each)]
    for directory in (each for each in found if os.path.isdir(each)):
        files += [entry.path for entry in os.scandir(directory) if entry.is_file()]
    return Probe(offers={"files": sorted(files)[:OFFERED]})


def probe_writing(spark: SparkSession, path: str, store: Store | None = None) -> Probe:
    """Test whether a directory can be written to, or created."""
    if not is_local(path):
        return _probe_url(spark, path, store, must_exist=False)
    nearest = local_path(path)
    while not os.path.exists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        return _problem("not_a_directory", f"'{nearest}' is a file, not a directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return _problem("path_not_writable", f"the worker has no permission to write to '{nearest}'")
    return Probe()


def _probe_url(spark: SparkSession, path: str, store: Store | None, *, must_exist: bool = True) -> Probe:
    if problems := unanswered(store):
        return Probe(problems=problems)
    plain = path
    while glob.has_magic(plain):
        plain = os.path.dirname(plain)
    try:
        exists, found = _looked_at(spark, plain, store)
    except PenstockError as error:
        return Probe(problems=error.problems)
    except java_errors() as error:
        known = explained(error_text(error), path, store)
        if known is not None:
            return Probe(problems=known.problems)
        hint = "check the path and the permissions of the worker"
        return _problem("path_not_readable", f"can't access '{path}': {_first_line(error)}", hint)
    if must_exist and not exists:
        return _problem("path_not_found", f"nothing found at '{path}'", "check the bucket and the path")
    return Probe(offers={"files": sorted(found)[:OFFERED]} if must_exist else {})


def _looked_at(spark: SparkSession, path: str, store: Store | None) -> tuple[bool, list[str]]:
    """Whether a path exists, and the paths directly below it."""
    access = hadoop_options(spark, path, store, quick=True)
    storage = storage_for(path, spark, access)
    try:
        found = storage.children(path)
        return bool(found) or storage.exists(path), found
    finally:
        if access:
            storage.close()


def _first_line(error: Exception) -> str:
    """The message of a Java exception without its class name."""
    return error_text(error).splitlines()[0].partition(": ")[2]


def _problem(code: str, message: str, hint: str | None = None) -> Probe:
    return Probe(problems=[Problem(code=code, message=message, path="path", hint=hint)])
