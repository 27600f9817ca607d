from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.sql.names import find, paths, quote


def struct(**fields: StructType | IntegerType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


SCHEMA = struct(
    a=struct(b=struct(c=IntegerType()), B2=IntegerType()),
    **{"a.b": IntegerType(), "x.y": struct(z=IntegerType())},
)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("A", ("a",)),
        ("a.b", ("a.b",)),
        ("a.b.c", ("a", "b", "c")),
        ("a.b2", ("a", "B2")),
        ("x.y.z", ("x.y", "z")),
        ("x.y", ("x.y",)),
        ("x", None),
        ("a.", None),
        ("", None),
        ("a.b.c.d", None),
    ],
)
def test_find(text: str, path: tuple[str, ...] | None) -> None:
    assert find(SCHEMA, text, sensitive=False) == path


def test_find_by_exact_case_where_the_session_says_so() -> None:
    assert find(SCHEMA, "A", sensitive=True) is None
    assert find(SCHEMA, "a.B2", sensitive=True) == ("a", "B2")


def test_paths_and_quotes() -> None:
    assert list(paths(SCHEMA)) == ["a", "a.b", "a.b.c", "a.B2", "a.b", "x.y", "x.y.z"]
    assert quote("a.b", "c`d") == "`a.b`.`c``d`"
