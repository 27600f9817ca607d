from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import Invalid, Problem
from penstock.streams.schema import arrow_schema, same_or_wider

SPARK_AGREES = [
    "id BIGINT, user STRING NOT NULL, at TIMESTAMP, tags ARRAY<STRING>, m MAP<STRING,INT>",
    "s STRUCT<a: INT, b: DECIMAL(10,2)>, local TIMESTAMP_NTZ, instant timestamp_ltz",
    "a tinyint, b smallint, c int, d integer, e byte, f short, g long, h real, i float, j double",
    "a DECIMAL, b DEC(5), c NUMERIC(5,2), d DECIMAL(38,38), e decimal( 38 , 0 )",
    "a BOOLEAN, b BINARY, c DATE",
    "a INT COMMENT 'it\\'s', b INT NOT NULL COMMENT \"two\", c STRING COMMENT 'a' 'b', d INT COMMENT r'\\x'",
    "`a.b` INT, `c``d` INT, ` ` INT, `größe` INT, `_x` STRUCT<`a.b`: INT>",
    "a: int, b: string",
    "select INT, table STRING, struct INT, array INT, map INT, not INT, null INT, comment INT, interval INT",
    "show INT, group INT, by INT, order STRING, int INT, string STRING, decimal DECIMAL, timestamp TIMESTAMP",
    "1a INT, _ INT, a_1 INT, double DOUBLE",
    "a ARRAY < MAP < STRING , ARRAY<INT>>>, b STRUCT<a INT, b: STRUCT<c: ARRAY<INT> NOT NULL COMMENT 'x'>>",
    "m MAP<INT, STRUCT<a: INT NOT NULL>>, n MAP<DATE, BINARY>",
    "a INT -- the first\n, /* second */ b INT",
]


@pytest.mark.parametrize("ddl", SPARK_AGREES)
def test_the_schema_is_what_spark_makes_of_it(spark: SparkSession, ddl: str) -> None:
    assert arrow_schema(ddl).equals(from_spark(ddl))


def from_spark(ddl: str) -> pa.Schema:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return to_arrow_schema(schema, timezone="UTC")


scalars = st.sampled_from(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "STRING",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
    ]
) | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"DECIMAL({p},{s})"))

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True) | st.text(
    st.characters(exclude_categories=["C"], exclude_characters="_"), min_size=1, max_size=5
).map(lambda name: "`" + name.replace("`", "``") + "`")


def columns(kinds: st.SearchStrategy[str], mark: str) -> st.SearchStrategy[str]:
    field = st.tuples(names, kinds, st.sampled_from(["", " NOT NULL", " COMMENT 'x'"]))
    fields = st.lists(field, min_size=1, max_size=4, unique_by=lambda f: f[0].strip("`").lower())
    return fields.map(lambda them: ", ".join(f"{name}{mark} {kind}{rest}" for name, kind, rest in them))


types = st.recursive(
    scalars,
    lambda inner: (
        inner.map(lambda kind: f"ARRAY<{kind}>")
        | st.tuples(scalars, inner).map(lambda pair: f"MAP<{pair[0]}, {pair[1]}>")
        | columns(inner, ":").map(lambda fields: f"STRUCT<{fields}>")
    ),
    max_leaves=6,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ddl=columns(types, ""))
def test_nested_types_are_what_spark_makes_of_them(spark: SparkSession, ddl: str) -> None:
    assume(ddl != "value BINARY")  # raw
    assert arrow_schema(ddl).equals(from_spark(ddl))


def problem(ddl: str) -> Problem:
    with pytest.raises(Invalid) as caught:
        arrow_schema(ddl)
    (found,) = caught.value.problems
    assert found.path == "schema"
    assert found.hint
    return found


@pytest.mark.parametrize(
    ("ddl", "says"),
    [
        ("", "no column"),
        ("  -- nothing\n", "no column"),
        ("id", "found the end, expected the type of 'id'"),
        ("id BIGINT,", "the end, expected the name of a column"),
        ("id BIGINT name STRING", "'name', expected a comma or the end"),
        ("id BIGINT;", "';', expected a comma"),
        ("id BIGINT NOT", "NULL after NOT"),
        ("id BIGINT NULL", "'NULL', expected"),
        ("id BIGINT DEFAULT 3", "'DEFAULT', expected"),
        ("id BIGINT COMMENT x", "the comment in quotes"),
        ("id BIGINT COMMENT 'x", "a quote is not closed"),
        ("id BIGINT COMMENT 'x' NOT NULL", "'NOT', expected"),
        ("a.b INT", "'.', expected the type"),
        ("12 INT", "'12', expected the name"),
        ("1e3 INT", "'1e3', expected the name"),
        ("größe INT", "'größe', expected the name"),
        ("my-col INT", "'-', expected the type"),
        ("'a' INT", "'a', expected the name"),
        ("`` INT", ", expected the name"),
        ("a ARRAY<INT", "the end, expected '>'"),
        ("a ARRAY", "the end, expected '<'"),
        ("a ARRAY<INT NOT NULL>", "'NOT', expected '>'"),
        ("a MAP<INT>", "'>', expected ','"),
        ("a STRUCT<b: INT,>", "'>', expected the name"),
        ("a INT(3)", "INT takes no length"),
        ("a TEXT", "the type 'TEXT'"),
        ("a DATETIME", "the type 'DATETIME'"),
        ("a `INT`", "the type 'INT'"),
        ("a DOUBLE PRECISION", "the type 'DOUBLE PRECISION'"),
        ("a DECIMAL(39,2)", "DECIMAL(39,2) is not a valid type"),
        ("a DECIMAL(5,6)", "DECIMAL(5,6) is not a valid type"),
        ("a DECIMAL(0)", "DECIMAL(0,0) is not a valid type"),
        ("a DECIMAL(5,-1)", "'-', expected a number"),
        ("a INT, A INT", "duplicate name 'a' in the columns"),
        ("s STRUCT<x: INT, X: INT>", "duplicate name 'x' in the fields of 's'"),
    ],
)
def test_what_is_no_schema(ddl: str, says: str) -> None:
    found = problem(ddl)
    assert found.code == "invalid_schema"
    assert says in found.message


@pytest.mark.parametrize(
    "kind",
    [
        "INTERVAL",
        "INTERVAL DAY TO SECOND",
        "VARIANT",
        "VOID",
        "CHAR(3)",
        "VARCHAR(4)",
        "TIME",
        "TIME(3)",
        "GEOMETRY(4326)",
        "STRUCT<>",
        "ARRAY<VARIANT>",
        "MAP<ARRAY<INT>, INT>",
        "STRING COLLATE UTF8_LCASE",
        "STRUCT<a: STRING COLLATE UTF8_LCASE>",
    ],
)
def test_types_that_a_stream_cannot_hold(kind: str) -> None:
    assert problem(f"a {kind}").code == "unsupported_type"


def test_a_misspelt_type_gets_a_suggestion() -> None:
    assert problem("a STRNG").hint == "did you mean 'string'?"


@pytest.mark.parametrize("name", ["_key", "_headers", "_offset", "_time", "_Key", "`_TIME`"])
def test_names_that_are_reserved(name: str) -> None:
    assert problem(f"a INT, {name} INT").code == "reserved_column"


def test_reserved_names_are_free_inside_a_struct() -> None:
    assert arrow_schema("s STRUCT<_key: INT>").field("s").type.field(0).name == "_key"


def test_the_schema_of_raw_streams_is_not_declared() -> None:
    assert problem("value BINARY").code == "raw_schema"
    assert arrow_schema("value STRING").names == ["value"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a INT, b STRING", "b STRING"),
        ("a INT", "a INT, b STRING"),
        ("a INT, b INT", "b INT, a INT"),
        ("a INT NOT NULL", "a INT"),
        ("a INT", "a BIGINT"),
        ("a INT", "a DOUBLE"),
        ("a SMALLINT", "a FLOAT"),
        ("a INT", "a DECIMAL(12,2)"),
        ("a FLOAT", "a DOUBLE"),
        ("a DECIMAL(10,2)", "a DECIMAL(12,4)"),
        ("a STRING", "a BINARY"),
        ("a DATE", "a TIMESTAMP_NTZ"),
        ("a ARRAY<INT>", "a ARRAY<BIGINT>"),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>"),
        ("a STRUCT<x: INT, y: INT>", "a STRUCT<x: BIGINT, z: STRING>"),
    ],
)
def test_changes_that_stored_events_follow(old: str, new: str) -> None:
    assert same_or_wider(arrow_schema(old), arrow_schema(new)) == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("a BIGINT", "a INT", "incompatible_type"),
        ("a BIGINT", "a DOUBLE", "incompatible_type"),
        ("a DOUBLE", "a FLOAT", "incompatible_type"),
        ("a INT", "a STRING", "incompatible_type"),
        ("a INT", "a DECIMAL(10,2)", "incompatible_type"),
        ("a DECIMAL(10,2)", "a DECIMAL(10,4)", "incompatible_type"),
        ("a DOUBLE", "a DECIMAL(38,2)", "incompatible_type"),
        ("a BINARY, b INT", "a STRING, b INT", "incompatible_type"),
        ("a TIMESTAMP", "a TIMESTAMP_NTZ", "incompatible_type"),
        ("a INT", "A INT", "incompatible_type"),
        ("a ARRAY<BIGINT>", "a ARRAY<INT>", "incompatible_type"),
        ("a MAP<STRING, INT>", "a MAP<INT, INT>", "incompatible_type"),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT, y: INT NOT NULL>", "incompatible_type"),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT NOT NULL>", "incompatible_type"),
        ("a INT", "a INT, b INT NOT NULL", "required_column"),
        ("a INT", "a INT NOT NULL", "required_column"),
        ("a INT", "b INT", "incompatible_schema"),
    ],
)
def test_changes_that_stored_events_cannot_follow(old: str, new: str, code: str) -> None:
    (found,) = same_or_wider(arrow_schema(old), arrow_schema(new))
    assert found.code == code
