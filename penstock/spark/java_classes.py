"""Classes in Java that steps bring along, compiled by the compiler that Spark carries.

A step with state of its own is far slower in Python. A source is compiled once per session, in about a
second, and Spark hands its classes on to the executors.
"""

from __future__ import annotations

import tempfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "penstock"

_lock = threading.Lock()


def java_class(spark: SparkSession, source: Path) -> Any:
    """The class that a Java file of the package `penstock` declares, ready for drivers and executors."""
    jvm: Any = spark._jvm
    with _lock:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        if loader.getResource(f"{PACKAGE}/{source.stem}.class") is None:
            jar = _compiled(spark, source)
            context: Any = spark.sparkContext
            context._jsc.addJar(str(jar))
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    return getattr(getattr(jvm, PACKAGE), source.stem)


def _compiled(spark: SparkSession, source: Path) -> Path:
    """A jar with the classes of a source, among the temporary files of the session's context."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    directory = Path(tempfile.mkdtemp(dir=context._temp_dir))
    compiler = jvm.org.codehaus.janino.CompilerFactory().newCompiler()
    compiler.setDestinationDirectory(jvm.java.io.File(str(directory)), False)
    files = context._gateway.new_array(jvm.java.io.File, 1)
    files[0] = jvm.java.io.File(str(source))
    compiler.compile(files)
    jar = directory.with_suffix(".jar")
    with zipfile.ZipFile(jar, "w") as target:
        for file in directory.rglob("*.class"):
            target.write(file, file.relative_to(directory))
    return jar
