"""Atomic publishing of a batch: on the local file system, a Hadoop file system, or an object store."""

from __future__ import annotations

import contextlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.connectors.file.paths import is_local, local_path
from penstock.connectors.file.store import JAVA, NO_USER, is_object_store
from penstock.spark.driver import error_text, hadoop_configuration, java_errors, jvm_of
from penstock.spark.java_classes import java_class
from penstock.streams.files import Files

HADOOP_OUTPUT = "org.apache.hadoop.mapreduce.lib.output"


class Storage(ABC):
    """The file operations a sink needs so that readers see either all of a batch or nothing."""

    one_file = False
    """Whether a batch has to be one file."""

    def begin(self, target: str) -> dict[str, str]:
        """Prepare to stage files that become `target`; returns options of Spark's writer."""
        return {}

    @abstractmethod
    def staging(self, output: str) -> str:
        """A directory for unfinished work, from which a rename into `output` is atomic."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether `path` exists."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Whether `path` is a directory."""

    @abstractmethod
    def publish(self, source: str, target: str) -> None:
        """Make staged files visible in one step. An existing target is left unchanged."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete staged files or a directory tree, if it exists."""

    @abstractmethod
    def sizes(self, path: str) -> list[int]:
        """The sizes of the files in a directory tree, in bytes."""

    @abstractmethod
    def children(self, path: str) -> list[str]:
        """The paths directly below `path`."""

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Close the client of the storage, unless it is shared."""


def storage_for(path: str, spark: Any, options: Mapping[str, str] | None = None) -> Storage:
    """The storage of a path, opened with Hadoop settings."""
    if is_local(path):
        return LocalStorage()
    return (ObjectStorage if is_object_store(path) else HadoopStorage)(spark, path, options)


class LocalStorage(Storage):
    """The local file system: `rename(2)` is atomic and fails if the target is a non-empty directory."""

    def staging(self, output: str) -> str:
        output = local_path(output)
        os.makedirs(output, exist_ok=True)
        parent, name = os.path.split(output)
        beside = os.stat(parent).st_dev == os.stat(output).st_dev and os.access(parent, os.W_OK)
        # Beside the output rather than in it: readers that walk the whole tree must not see staged files.
        return os.path.join(parent, f".{name}.staging") if beside else os.path.join(output, "_staging")

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def publish(self, source: str, target: str) -> None:
        try:
            Files().rename_durably(Path(source), Path(target))  # the ledger will refer to it
        except OSError:
            if not os.path.exists(target):
                raise
            shutil.rmtree(source, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(source))  # unless another batch is staged there

    def remove(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def sizes(self, path: str) -> list[int]:
        return [os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files]

    def children(self, path: str) -> list[str]:
        return [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else []


class HadoopStorage(Storage):
    """A file system behind Hadoop's API. The rename is as atomic as that file system's own."""

    def __init__(self, spark: Any, url: str, options: Mapping[str, str] | None = None) -> None:
        self.jvm = jvm_of(spark)
        self.uri = self.jvm.java.net.URI(url)
        self.configuration = hadoop_configuration(spark, options)
        self.files = self.jvm.org.apache.hadoop.fs.FileSystem.get(self.uri, self.configuration)

    def staging(self, output: str) -> str:
        return f"{output.rstrip('/')}/_staging"

    def exists(self, path: str) -> bool:
        return bool(self.files.exists(self._path(path)))

    def is_directory(self, path: str) -> bool:
        return bool(self.exists(path) and self.files.getFileStatus(self._path(path)).isDirectory())

    def publish(self, source: str, target: str) -> None:
        self.files.mkdirs(self._path(target).getParent())
        rename = getattr(self.jvm, "org.apache.hadoop.fs.Options$Rename")
        options = self.jvm.java.lang.reflect.Array.newInstance(rename.NONE.getClass(), 0)
        contexts = self.jvm.org.apache.hadoop.fs.FileContext
        context = contexts.getFileContext(self.uri, self.configuration)
        try:
            context.rename(self._path(source), self._path(target), options)
        except Exception:
            if not self.exists(target):
                raise
            self.remove(source)

    def remove(self, path: str) -> None:
        self.files.delete(self._path(path), True)

    def sizes(self, path: str) -> list[int]:
        found, listing = [], self.files.listFiles(self._path(path), True)
        while listing.hasNext():
            found.append(int(listing.next().getLen()))
        return found

    def children(self, path: str) -> list[str]:
        try:
            found = self.files.listStatus(self._path(path))
        except java_errors() as error:
            text = error_text(error)
            # Some stores respond that a user is not found, which Hadoop reports as a missing path.
            if "FileNotFoundException" not in text or NO_USER.search(text):
                raise
            return []
        return [str(status.getPath().toString()) for status in found]

    def close(self) -> None:
        self.files.close()

    def _path(self, path: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(path)


class ObjectStorage(HadoopStorage):
    """An object store: a batch is one object, which becomes visible with one request.

    The object is uploaded in parts, and publishing the batch completes the upload; decision 46 has the
    reasons. The object is named after the batch, so an upload that an older worker completes as well replaces
    the object with the same events.
    """

    one_file = True

    def __init__(self, spark: Any, url: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(spark, url, options)
        self.objects = java_class(spark, JAVA / "StagedObject.java")

    def begin(self, target: str) -> dict[str, str]:
        self.objects.fence(self._path(target), self.configuration)
        committer = "penstock.ObjectCommitter"
        return {
            "penstock.store.target": target,
            "spark.sql.sources.outputCommitterClass": committer,
            "spark.sql.parquet.output.committer.class": committer,
            # Spark creates the default committer first, and S3A's rejects file systems other than its own.
            "mapreduce.outputcommitter.factory.class": f"{HADOOP_OUTPUT}.FileOutputCommitterFactory",
        }

    def publish(self, source: str, target: str) -> None:
        if self.exists(target):
            self.remove(source)
        else:
            self.objects.publish(self._path(source), self.configuration)

    def remove(self, path: str) -> None:
        self.objects.discard(self._path(path), self.configuration)
