from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.java_classes import CACHE, _jar, java_class


def test_the_sources_of_a_directory_are_compiled_together_and_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set(CACHE, str(tmp_path / "cache"))
    other, source = tmp_path / "KeptOther.java", tmp_path / "Kept.java"
    other.write_text('package penstock; final class KeptOther { static final String TEXT = "other"; }')
    source.write_text(
        "package penstock; public class Kept { public static String text() { return KeptOther.TEXT; } }"
    )
    assert java_class(session, source).text() == "other"
    (kept,) = (tmp_path / "cache").iterdir()
    assert _jar(session, [source, other]) == kept
    source.write_text(source.read_text().replace("KeptOther.TEXT", '"another"'))
    assert _jar(session, [source, other]) != kept
    assert len(list((tmp_path / "cache").iterdir())) == 2
    session.conf.unset(CACHE)
    assert _jar(session, [source]).parent != kept.parent
