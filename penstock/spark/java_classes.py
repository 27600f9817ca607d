"""Java classes of steps and connectors, compiled by the compiler that Spark includes.

Some work is far slower in Python, such as stateful steps and reading files. The sources of a directory are
compiled once, which takes seconds, and cached on this machine. Spark sends the classes to the executors.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

PACKAGE = "penstock"

CACHE = "spark.penstock.cache"
"""The session property with the cache directory for jars; without it, jars are not cached."""

_lock = threading.Lock()

_thread = threading.local()
"""`known`: the classes that this thread, and therefore its thread in the JVM, has loaded, by JVM gateway."""


def java_class(spark: SparkSession, source: Path) -> Any:
    """The class that a Java file of the package `penstock` declares, ready for drivers and executors.

    It may use the other Java files in its directory. Further calls in the same thread return the class
    without a call to the JVM.
    """
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    known = vars(_thread).setdefault("known", WeakKeyDictionary()).setdefault(context._gateway, {})
    if source not in known:
        _load(spark, source)
        known[source] = getattr(getattr(jvm, PACKAGE), source.stem)
    return known[source]


def _load(spark: SparkSession, source: Path) -> None:
    """Make a class available to the class loader of this thread."""
    with _lock:
        if not has_class(spark, f"{PACKAGE}.{source.stem}"):
            add_jar(spark, _jar(spark, sorted(source.parent.glob("*.java"))))


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether the JVM of a session can find a class."""
    loader = _loader(spark)
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def add_jar(spark: SparkSession, jar: Path) -> None:
    """Put a jar on the class path of a running session, for drivers and executors."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    context._jsc.addJar(str(jar))
    _loader(spark).addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def _loader(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def called(spark: SparkSession, function: Any, *arguments: Column) -> Column:
    """The result of a Java `UserDefinedFunction` as a column."""
    from pyspark.sql import Column

    session: Any = spark
    columns: Any = arguments
    return Column(function.apply(session._jvm.PythonUtils.toSeq([column._jc for column in columns])))


def _jar(spark: SparkSession, sources: list[Path]) -> Path:
    """A jar with the classes of some sources: from the cache, or a new one."""
    digest = hashlib.sha256(spark.version.encode())
    for source in sources:
        digest.update(source.read_bytes())
    cache = spark.conf.get(CACHE, "")
    kept = Path(cache or "") / f"java-{digest.hexdigest()[:16]}.jar"
    if cache and kept.exists():
        return kept
    made = _compiled(spark, sources)
    if cache:
        with contextlib.suppress(OSError):  # the directory is not writable
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(made, part)
            part.replace(kept)  # atomic for other processes
    return made


def _class_path(spark: SparkSession) -> list[str]:
    """Spark's jars, and the jars that were added to the running session."""
    jvm: Any = spark._jvm
    added = [str(url.getPath()) for url in _loader(spark).getURLs()]
    return [*str(jvm.java.lang.System.getProperty("java.class.path")).split(os.pathsep), *added]


def _files(spark: SparkSession, paths: Iterable[str]) -> Any:
    """A Java array of `File` objects."""
    context: Any = spark.sparkContext
    jvm: Any = spark._jvm
    named = list(paths)
    files = context._gateway.new_array(jvm.java.io.File, len(named))
    for i, path in enumerate(named):
        files[i] = jvm.java.io.File(path)
    return files


def _compiled(spark: SparkSession, sources: list[Path]) -> Path:
    """A jar with the classes of some sources, among the temporary files of the session's context."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    directory = Path(tempfile.mkdtemp(dir=context._temp_dir))
    compiler = jvm.org.codehaus.janino.CompilerFactory().newCompiler()
    compiler.setDestinationDirectory(jvm.java.io.File(str(directory)), False)
    compiler.setClassPath(_files(spark, _class_path(spark)))
    compiler.compile(_files(spark, map(str, sources)))
    jar = directory.with_suffix(".jar")
    with zipfile.ZipFile(jar, "w") as target:
        for file in directory.rglob("*.class"):
            target.write(file, file.relative_to(directory))
    return jar
