"""Jars that a connector needs and Spark does not include: pinned, downloaded once, and kept in the cache.

A jar is only used if its checksum is the one in this module, wherever it comes from. Once the jars of a set
are in the cache, no network is needed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import NotFound, Problem, Unavailable, did_you_mean
from penstock.settings import Settings
from penstock.spark.archive import spark_jars
from penstock.spark.java_classes import CACHE, add_jar, has_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = "spark.penstock.repository"
"""The property of a session that has the URL of the Maven repository; empty: Maven Central."""

CONNECT_S, READ_S = 10.0, 60.0

IVY = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
"""The class of Ivy, which Spark includes, that has the address of Maven Central as a constant."""

_lock = threading.Lock()


@dataclass(frozen=True)
class Jar:
    """A jar by its Maven coordinates, with the checksum of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Its path in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"


@dataclass(frozen=True)
class JarSet:
    """The jars that make a connector work."""

    main: str
    """A class of the set. If Spark can find it, such as by `spark.jars`, the set is not needed."""
    jars: tuple[Jar, ...]


def _jar(coordinates: str, sha256: str) -> Jar:
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)


SETS: Mapping[str, JarSet] = {
    "kafka": JarSet(
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        (
            _jar(
                "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
                "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
            ),
            _jar(
                "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
                "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
            ),
            _jar(
                "org.apache.kafka:kafka-clients:3.9.2",
                "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
            ),
            _jar(
                "org.apache.commons:commons-pool2:2.13.1",
                "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
            ),
        ),
    )
}
"""By name. The newest versions in Maven Central that work with the pinned PySpark, which the tests show."""


@dataclass(frozen=True)
class JarCache:
    """The jars on this machine, and the repository that the others are downloaded from."""

    directory: Path
    repository: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> JarCache:
        """The cache of the settings."""
        return cls(settings.cache_directory / "jars", settings.jars.repository)

    def kept(self, jar: Jar) -> Path | None:
        """The file of a jar; None if it is not there, or damaged."""
        path = self.directory / jar.file
        return path if _fits(path, jar) else None

    def fetch(self, name: str, on_download: Callable[[Jar], None] = lambda _: None) -> list[Path]:
        """The files of a set; those that are missing are downloaded.

        Raises `Unavailable` if that fails.
        """
        return [self.kept(jar) or self._fetched(jar, on_download) for jar in jars_of(name)]

    def _fetched(self, jar: Jar, on_download: Callable[[Jar], None]) -> Path:
        path = self.directory / jar.file
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            local = Path.home() / ".m2" / "repository" / jar.path
            if _fits(local, jar):
                shutil.copyfile(local, part)
            else:
                on_download(jar)
                self._download(jar, part)
            if not _fits(part, jar):
                raise _missing(jar, "its checksum is not the expected one, so it was not kept")
            part.replace(path)  # another process sees all of it or nothing
        except OSError as error:
            raise _missing(jar, f"it cannot be stored in {self.directory}: {error.strerror}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    def _download(self, jar: Jar, target: Path) -> None:
        import httpx

        base = self.repository or maven_central()
        if base is None:
            raise _missing(jar, "no repository is set, and Spark's jars do not name Maven Central")
        url = f"{base.rstrip('/')}/{jar.path}"
        timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
        try:
            with (
                httpx.stream("GET", url, timeout=timeout, follow_redirects=True) as answer,
                target.open("wb") as out,
            ):
                answer.raise_for_status()
                for block in answer.iter_bytes():
                    out.write(block)
        except httpx.HTTPStatusError as error:
            raise _missing(jar, f"{url} answers {error.response.status_code}") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise _missing(jar, f"{url}: {error or type(error).__name__}") from None


def jars_of(name: str) -> tuple[Jar, ...]:
    """The jars of a set; `NotFound` if there is none of this name."""
    if name not in SETS:
        message = f"there is no set of jars called '{name}'"
        raise NotFound(Problem(code="unknown_jars", message=message, hint=did_you_mean(name, SETS)))
    return SETS[name].jars


def use_jars(spark: SparkSession, name: str) -> None:
    """Put a set on the class path of a running session, once; downloads the jars that are missing."""
    with _lock:
        if has_class(spark, SETS[name].main):
            return
        cache = spark.conf.get(CACHE, "") or str(Settings().cache_directory)
        repository = spark.conf.get(REPOSITORY, "")
        for path in JarCache(Path(cache) / "jars", repository or None).fetch(name):
            add_jar(spark, path)


def maven_central() -> str | None:
    """The address of Maven Central, as the Ivy in Spark's jars has it."""
    directory = spark_jars()
    for file in sorted(directory.glob("ivy-*.jar")) if directory else ():
        with zipfile.ZipFile(file) as jar:
            found = re.search(rb"https://[\w./-]+/maven2/", jar.read(IVY))
            if found:
                return found[0].decode()
    return None


def _fits(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except OSError:
        return False


def _missing(jar: Jar, why: str) -> Unavailable:
    message = f"the jar {jar.artifact} {jar.version} is not here, and could not be downloaded: {why}"
    hint = "run `penstock jars fetch` where the repository can be reached, or set jars.repository to a mirror"
    return Unavailable(Problem(code="jars_missing", message=message, hint=hint))
