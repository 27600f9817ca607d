"""Jars that a connector needs and Spark does not include: pinned, downloaded once, and cached.

A jar is only used if its checksum matches the one in this module, regardless of its origin. Once the jars of
a set are in the cache, no network is needed.
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
"""The session property with the URL of the Maven repository; empty: Maven Central."""

CONNECT_S, READ_S = 10.0, 60.0

IVY = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
"""The class of Ivy, which is included in Spark, that has the URL of Maven Central as a constant."""

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
        """The file name of the jar."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """The path of the jar in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"


@dataclass(frozen=True)
class JarSet:
    """The jars that a connector needs."""

    main: str
    """A class of the set. If Spark can find it, for example through `spark.jars`, the set is not needed."""
    jars: tuple[Jar, ...]


def _jar(coordinates: str, sha256: str) -> Jar:
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)


AWS_SDK = {
    "apache-client": "6eade21b482724ed0a4613eaa95d20e47e7a81304bd28538ac427fece94a7740",
    "arns": "c63cc29f76a8527e9e10b621703163df541dc5cb315508dc2898518602c75380",
    "auth": "6b601323004833fb4a857ffc95db4795e0e6320eb93e64b1246c655c9ff04994",
    "aws-core": "fdb5fc8f1a48d97fa7d04d3460fb42f6973c7b1bbe1b9d317871ef0162bcb623",
    "aws-query-protocol": "9b4cf9b78977cc9f5b4ceae9c435dedbde6a055a0f8d9e053eaca945715e2a9f",
    "aws-xml-protocol": "4f59176da2522c357b1993e4a890fde529f12f365795ef86269bde4a3984cd0d",
    "checksums": "94464af4374d08ecf33ca06ed4d03e1615529e547726e26b56abacefbeee7948",
    "checksums-spi": "88b5af85ac2d3c862be8856be4e683ab31932e4a5a3c1c45af864d2671ac7cec",
    "endpoints-spi": "ef02441bda916959b8341290b49c68cc35538e1ad6f8629b75d8334dc6653e00",
    "http-auth": "3ec933a06e751a05e195eb3589209e23c44e1897263b6fcae34ef4cc63cd4491",
    "http-auth-aws": "c4acb92fdec90bfd9b67bfab8e41b69cd152c03cacc10281a8ab464791856e01",
    "http-auth-spi": "4495463406bb98eb136f2c3f3604ed5f08ec9974ebc3f34f2121b20679f61d5c",
    "http-client-spi": "728be89b2a07b595edb0adee3a2cbbbdd4cb1f4caddde0d08c3979fe2620dedb",
    "identity-spi": "188d73db7d4e2361654bc3c5a1b3eaeb445d0500fb012cc46c5d67975adf97bf",
    "json-utils": "80d67a6bb3e7eb49c7d4b6e4ba4c1463ed7da0192b795158328602dc131c5ecc",
    "metrics-spi": "c2a4ee90a21081317e2e6eba0c414d05d3d518aed2f86b1c1710a7367b450487",
    "profiles": "0f4ef7ca72ccd80dd49ebeaf7f3ce60a7d7a00da59a91aeeae6e91052bbacbd8",
    "protocol-core": "f2532eca6ba2142fe4821d5decb03c83a3e15dc8bfae2240e7f2efa75f9868b5",
    "regions": "77eae87b34ce96ecdf916a9bc06684dbeafcb6d38ef0513285fa5d5d6d41f5ca",
    "retries": "f99fb2f8c66d7e859955b3542d3af8f9de8f23a21d5e3250f0f2c5f18487e469",
    "retries-spi": "668638751d059c527ddd41ffa4dcebe36a7c14860ed56776df09b861c14dc7dd",
    "s3": "f23532c5223be9b0bfec0d72837ed09ed34dbdf8022818ba145b20076a78b4bc",
    "s3-transfer-manager": "0eec78870b3d0abc509a847072cf963cb2ae6e360dc6161a9449b3398c470476",
    "sdk-core": "fa559a4ce598852f3519c8f3b36250f583b0858a7611eedc4a81997778c617f4",
    "sts": "8d0f7816d3f96e3f00249f5d054d926e939a104bcf9ef57676ee0b16c59684d2",
    "third-party-jackson-core": "32f4252c6c2df8f3a4aff885e6dc77024ad6b4cb48455d07b461ec30c41643ea",
    "utils": "642aeef536a071668f0b772f05f9d21573abf6955e7b6fb5fdb893760cca10e8",
}
"""The modules of the AWS SDK that Hadoop's S3 client uses: 9 MB, while the full bundle has 690 MB."""

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
    ),
    "s3": JarSet(
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
        (
            _jar(
                "org.apache.hadoop:hadoop-aws:3.5.0",
                "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
            ),
            _jar(
                "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
                "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
            ),
            _jar(
                "org.reactivestreams:reactive-streams:1.0.4",
                "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
            ),
            *(_jar(f"software.amazon.awssdk:{name}:2.35.4", sha256) for name, sha256 in AWS_SDK.items()),
        ),
    ),
}
"""The jar sets by name: the newest versions in Maven Central that work with the pinned PySpark, as tested."""


@dataclass(frozen=True)
class JarCache:
    """The jars on this machine, and the repository from which missing jars are downloaded."""

    directory: Path
    repository: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> JarCache:
        """The cache of the settings."""
        return cls(settings.cache_directory / "jars", settings.jars.repository)

    def kept(self, jar: Jar) -> Path | None:
        """The file of a jar; None if it is missing or damaged."""
        path = self.directory / jar.file
        return path if _fits(path, jar) else None

    def fetch(self, name: str, on_download: Callable[[Jar], None] = lambda _: None) -> list[Path]:
        """The files of a set; missing files are downloaded.

        Raises `Unavailable` if a download fails.
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
                raise _missing(jar, "the checksum doesn't match, so the file was discarded")
            part.replace(path)  # atomic for other processes
        except OSError as error:
            raise _missing(jar, f"can't be stored in {self.directory}: {error.strerror}") from None
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
            raise _missing(jar, f"{url} responded with {error.response.status_code}") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise _missing(jar, f"{url}: {error or type(error).__name__}") from None


def jars_of(name: str) -> tuple[Jar, ...]:
    """The jars of a set; raises `NotFound` if there is no set with this name."""
    if name not in SETS:
        message = f"there is no set of jars '{name}'"
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
    """The URL of Maven Central, from Ivy in Spark's jars."""
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
    message = (
        f"the jar {jar.artifact} {jar.version} is not on this machine and could not be downloaded: {why}"
    )
    hint = "run `penstock jars fetch` with access to the repository, or set jars.repository to a mirror"
    return Unavailable(Problem(code="jars_missing", message=message, hint=hint))
