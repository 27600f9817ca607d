from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid
from penstock.processors.flatten import FlattenProcessor
from tests.sql.helpers import refusal

Empty = Callable[[str], DataFrame]

NESTED = "id INT, u STRUCT<id: INT, a: STRUCT<b: STRUCT<c: INT>, l: ARRAY<INT>>>, l ARRAY<STRUCT<x: INT>>"


@pytest.mark.parametrize(
    ("step", "columns"),
    [
        (FlattenProcessor(), ["id", "u_id", "u_a_b_c", "u_a_l", "l"]),
        (FlattenProcessor(separator="."), ["id", "u.id", "u.a.b.c", "u.a.l", "l"]),
        (FlattenProcessor(separator="`"), ["id", "u`id", "u`a`b`c", "u`a`l", "l"]),
        (FlattenProcessor(max_depth=1), ["id", "u_id", "u_a", "l"]),
        (FlattenProcessor(max_depth=2), ["id", "u_id", "u_a_b", "u_a_l", "l"]),
        (FlattenProcessor(fields=["U"]), ["id", "u_id", "u_a_b_c", "u_a_l", "l"]),
    ],
)
def test_names(empty: Empty, step: FlattenProcessor, columns: list[str]) -> None:
    assert step.apply(empty(NESTED)).columns == columns


def test_arrays_become_json_only_where_asked(empty: Empty) -> None:
    types = {
        f.name: f.dataType.simpleString() for f in FlattenProcessor(arrays="json").apply(empty(NESTED)).schema
    }
    assert (types["u_a_l"], types["l"]) == ("string", "string")
    only = FlattenProcessor(arrays="json", fields=["u"]).apply(empty(NESTED))
    types = {f.name: f.dataType.simpleString() for f in only.schema}
    assert (types["u_a_l"], types["l"]) == ("string", "array<struct<x:int>>")


def test_same_names_are_refused(empty: Empty) -> None:
    problem = refusal(FlattenProcessor().apply, empty("u_id INT, u STRUCT<id: INT>"))
    assert (problem.code, problem.path) == ("duplicate_column", "separator")
    assert "'u_id' and 'u.id' would both be named 'u_id'" in problem.message
    assert FlattenProcessor(separator="-").apply(empty("u_id INT, u STRUCT<id: INT>")).columns == [
        "u_id",
        "u-id",
    ]
    assert refusal(FlattenProcessor().apply, empty("U_ID INT, u STRUCT<id: INT>")).code == "duplicate_column"


@pytest.mark.parametrize(
    ("fields", "code"),
    [(["nope"], "unknown_column"), (["u.a"], "unknown_column"), (["id"], "sql_type"), (["l"], "sql_type")],
)
def test_fields_must_be_structs_that_are_there(empty: Empty, fields: list[str], code: str) -> None:
    problem = refusal(FlattenProcessor(fields=fields).apply, empty(NESTED))
    assert (problem.code, problem.path) == (code, "fields[0]")


names = st.text(alphabet="ab._`é $", min_size=1, max_size=3)


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda f: f[0])
    return fields.map(pa.struct)


types = st.recursive(st.sampled_from([pa.int64(), pa.string(), pa.list_(pa.int64())]), structs, max_leaves=6)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries(
            {kind.field(i).name: values(kind.field(i).type) for i in range(kind.num_fields)}
        )
    if pa.types.is_list(kind):
        return st.none() | st.lists(st.integers(0, 9), max_size=2)
    return st.none() | (st.text("xy", max_size=2) if pa.types.is_string(kind) else st.integers(0, 9))


tables = structs(types).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(values(kind).filter(lambda v: v is not None), min_size=1, max_size=3)
    )
)


def leaves(kind: pa.DataType, value: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The flat columns of one value, by the plainest rule there is."""
    if not pa.types.is_struct(kind):
        return [("_".join(path), value)]
    found = []
    for i in range(kind.num_fields):
        field = kind.field(i)
        found += leaves(field.type, None if value is None else value[field.name], (*path, field.name))
    return found


@given(table=tables)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_leaf_keeps_its_value(spark: SparkSession, table: tuple[pa.DataType, list[Any]]) -> None:
    kind, rows = table
    schema = pa.schema([kind.field(i) for i in range(kind.num_fields)])
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    expected = [leaves(kind, row, ()) for row in rows]
    flat = [name for name, _ in expected[0]]
    if len({name.lower() for name in flat}) < len(flat):
        with pytest.raises(Invalid, match="would both be named"):
            FlattenProcessor().apply(frame)
        return
    result = FlattenProcessor().apply(frame)
    assert result.columns == flat
    assert [list(row) for row in result.collect()] == [[value for _, value in row] for row in expected]
