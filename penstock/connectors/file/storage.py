"""Publishing a directory in one step, on the local file system or on one that Hadoop knows."""

from __future__ import annotations

import contextlib
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from penstock.connectors.file.paths import is_local, local_path
from penstock.spark.driver import hadoop_configuration, jvm_of
from penstock.streams.files import Files


class Storage(ABC):
    """The few file operations a sink needs so that readers see all of a batch or nothing."""

    @abstractmethod
    def staging(self, output: str) -> str:
        """A directory for unfinished work, from which a rename into `output` is atomic."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is something at `path`."""

    @abstractmethod
    def publish(self, source: str, target: str) -> None:
        """Make a directory visible with one atomic move. An existing target stays as it is."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete a tree, if it is there."""

    @abstractmethod
    def sizes(self, path: str) -> list[int]:
        """The sizes of the files in a tree."""

    @abstractmethod
    def children(self, path: str) -> list[str]:
        """The paths directly below `path`."""


def storage_for(path: str, spark: Any) -> Storage:
    """The storage a path lives on."""
    return LocalStorage() if is_local(path) else HadoopStorage(spark, path)


class LocalStorage(Storage):
    """The local file system: `rename(2)` is atomic and refuses a target that is not empty."""

    def staging(self, output: str) -> str:
        output = local_path(output)
        os.makedirs(output, exist_ok=True)
        parent, name = os.path.split(output)
        beside = os.stat(parent).st_dev == os.stat(output).st_dev and os.access(parent, os.W_OK)
        # Beside the output rather than in it: readers that walk the whole tree must not see it.
        return os.path.join(parent, f".{name}.staging") if beside else os.path.join(output, "_staging")

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

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

    def __init__(self, spark: Any, url: str) -> None:
        self.jvm = jvm_of(spark)
        hadoop = self.jvm.org.apache.hadoop
        uri = self.jvm.java.net.URI(url)
        configuration = hadoop_configuration(spark)
        self.context = hadoop.fs.FileContext.getFileContext(uri, configuration)
        self.files = hadoop.fs.FileSystem.get(uri, configuration)

    def staging(self, output: str) -> str:
        return f"{output.rstrip('/')}/_staging"

    def exists(self, path: str) -> bool:
        return bool(self.files.exists(self._path(path)))

    def publish(self, source: str, target: str) -> None:
        self.files.mkdirs(self._path(target).getParent())
        rename = getattr(self.jvm, "org.apache.hadoop.fs.Options$Rename")
        options = self.jvm.java.lang.reflect.Array.newInstance(rename.NONE.getClass(), 0)
        try:
            self.context.rename(self._path(source), self._path(target), options)
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
        if not self.exists(path):
            return []
        return [str(status.getPath().toString()) for status in self.files.listStatus(self._path(path))]

    def _path(self, path: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(path)
