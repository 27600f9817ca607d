"""Checkpoints and state at a URL, not in a directory: the settings of the client, a test, and its errors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.connectors.file.paths import is_local
from penstock.connectors.file.store import S3, error_code, jars_for, scheme_of
from penstock.engine.runtime.failures import Failure
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.settings import Settings
from penstock.spark.driver import error_text, java_errors
from penstock.spark.jars import use_jars
from penstock.spark.stored_files import StoredFiles, install_s3_manager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""The property with the class that writes the files of checkpoints."""

LOCAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

HADOOP = "spark.hadoop."
"""Begins the names of Hadoop's settings among the properties of Spark."""

PATIENT = {"fs.s3a.attempts.maximum": "3", "fs.s3a.retry.limit": "4"}
"""More attempts than a sink makes: a checkpoint that cannot be written ends the run of its flow."""

PATH = "storage.url"

HINTS = {
    "bucket_not_found": "create the bucket, or correct storage.url",
    "store_login": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where the worker starts, or give its"
    " machine a role that may read, write, list and delete there",
    "store_denied": "let the user of the worker write there, such as by `hdfs dfs -chown`",
    "store_unreachable": "check that the server runs, and that the worker can reach it; the address of an S3"
    ' server is "hadoop.fs.s3a.endpoint" in [spark]',
    "unknown_host": 'correct the host in storage.url or in "hadoop.fs.s3a.endpoint" in [spark]',
    "no_file_system": "use s3a:// or hdfs://, or add the jar of its Hadoop file system to spark.jars",
}


def storage_properties(settings: Settings) -> dict[str, str]:
    """The Spark properties with which checkpoints are read and written."""
    url = settings.checkpoint_url
    if is_local(url):
        # The default manager forks some twenty processes a batch where Hadoop's native library is missing,
        # as it is in the wheel. This one needs a single writer, which leases see to.
        return {MANAGER: LOCAL}
    if scheme_of(url) != "s3a":
        return {}
    chosen = {**S3, **PATIENT}
    if f"{HADOOP}fs.s3a.endpoint" in settings.spark:  # not Amazon's: no host name for each bucket
        chosen |= {"fs.s3a.endpoint.region": "us-east-1", "fs.s3a.path.style.access": "true"}
    return {MANAGER: "penstock.StoredCheckpoints", **{HADOOP + name: text for name, text in chosen.items()}}


def prepare_storage(spark: SparkSession, settings: Settings) -> None:
    """Let Spark find the class that `storage_properties` names."""
    if scheme_of(settings.checkpoint_url) == "s3a":
        install_s3_manager(spark)


def require_storage(spark: SparkSession, settings: Settings) -> None:
    """Get the jars that `storage.url` needs, and write, read and remove a file there.

    Raises `PenstockError` if that fails, or if a file could be replaced by a worker that has lost its flow.
    """
    url = settings.checkpoint_url
    if is_local(url):
        return
    if scheme_of(url) in ("s3", "s3n"):
        raise Invalid(_problem("no_file_system", url))
    name = f"_test-{uuid.uuid4().hex}"
    try:
        if (jars := jars_for(url)) is not None:
            use_jars(spark, jars)
        files = StoredFiles(spark, url)
        try:
            kept = files.add(name, b"1") and not files.add(name, b"2") and files.read(name) == b"1"
        finally:
            files.remove(name)
    except java_errors() as error:
        raise _refused(error_text(error), url) from None
    if not kept:
        message = f"{url} replaces a file although it was asked not to"
        hint = "use a store that supports conditional writes (If-None-Match), as Amazon S3 does"
        raise Invalid(Problem(code="storage_unsafe", message=message, path=PATH, hint=hint))


def storage_failure(error: Any, checkpoint: str) -> Failure | None:
    """The failure behind an error of a run, if the storage of its checkpoint caused it.

    It is a passing one: it says nothing about the flow.
    """
    if is_local(checkpoint):
        return None
    text = error_text(error)
    code = error_code(text)
    if code is None or not _is_about(text, checkpoint):
        return None
    return Failure(_problem(code, checkpoint), fatal=False, passing=True)


def _is_about(text: str, url: str) -> bool:
    """Whether an exception is about the flow of a checkpoint.

    S3A names the key of the object, and HDFS the port of the server.
    """
    parts = urlsplit(url)
    port = f":{parts.port} " if parts.port else parts.netloc
    flow = parts.path.strip("/").rpartition("/")[0]  # the checkpoint is one of its directories
    return flow in text or (parts.scheme != "s3a" and port in text)


def _refused(text: str, url: str) -> PenstockError:
    code = error_code(text)
    if code is None:
        why = text.splitlines()[-1].partition(": ")[2] or text
        message = f"checkpoints can't be written to {url}: {why[:300]}"
        return Unavailable(Problem(code="storage_failed", message=message, path=PATH))
    kind = Unavailable if code in ("store_unreachable", "unknown_host") else Invalid
    return kind(_problem(code, url))


def _problem(code: str, url: str) -> Problem:
    place = urlsplit(url).netloc
    message = {
        "bucket_not_found": f"there is no bucket '{place}' for checkpoints",
        "store_login": f"access to '{place}', where checkpoints are kept, is denied",
        "store_denied": f"the worker may not write to {url}, where checkpoints are kept",
        "no_file_system": f"Spark has no file system for '{scheme_of(url)}://'",
    }.get(code, f"no response from '{place}', where checkpoints are kept")
    return Problem(code=code, message=message, path=PATH, hint=HINTS[code])
