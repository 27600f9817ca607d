"""Files at a URL, written in the same way as Spark writes the files of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark.driver import error_text, java_errors
from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3_MANAGER = Path(__file__).with_name("java") / "StoredCheckpoints.java"
"""The manager of checkpoints at `s3a://`; decision 61 has the reasons."""


def install_s3_manager(spark: SparkSession) -> None:
    """Let Spark find the class that writes checkpoints to S3."""
    java_class(spark, S3_MANAGER)


class StoredFiles:
    """The files directly below a URL. Readers see all of a file or nothing, and no file is ever replaced."""

    def __init__(self, spark: Any, url: str) -> None:
        jvm = spark._jvm
        self._url, self._path = url.rstrip("/"), jvm.org.apache.hadoop.fs.Path
        managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = managers.create(self._path(self._url), configuration)
        self._made = False

    def add(self, name: str, content: bytes) -> bool:
        """Store a new file; false if there is one of this name."""
        if not self._made:
            self._files.mkdirs(self._path(self._url))
            self._made = True
        out = self._files.createAtomic(self._at(name), False)
        try:
            out.write(content)
            out.close()
        except java_errors() as error:
            out.cancel()
            if "FileAlreadyExistsException" in error_text(error):
                return False
            raise
        return True

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none of this name."""
        try:
            file = self._files.open(self._at(name))
        except java_errors() as error:
            if "FileNotFoundException" in error_text(error):
                return None
            raise
        try:
            return bytes(file.readAllBytes())
        finally:
            file.close()

    def names(self) -> list[str]:
        """The names of the files, sorted."""
        try:
            found = self._files.list(self._path(self._url))
        except java_errors() as error:
            if "FileNotFoundException" in error_text(error):
                return []
            raise
        names = sorted(str(status.getPath().getName()) for status in found if status.isFile())
        return [name for name in names if not name.startswith(".")]  # those are temporary

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._files.delete(self._at(name))

    def _at(self, name: str) -> Any:
        return self._path(f"{self._url}/{name}")
