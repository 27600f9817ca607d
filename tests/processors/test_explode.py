from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from penstock.processors.explode import ExplodeProcessor
from tests.processors.conftest import Frames
from tests.processors.test_steps import shape
from tests.sql.helpers import refusal, run

Empty = Callable[[str], DataFrame]

SCHEMA = "id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, o STRUCT<items: ARRAY<STRUCT<sku: STRING>>>"
EVENTS: list[dict[str, Any]] = [
    {"id": 1, "tags": ["a", None], "m": {"x": 1, "y": 2}, "o": {"items": [{"sku": "s"}]}},
    {"id": 2, "tags": [], "m": None, "o": None},
]


@pytest.mark.parametrize(
    ("step", "kept", "schema", "rows"),
    [
        (
            ExplodeProcessor(field="TAGS"),
            "id, tags",
            "id int, tags string",
            [(1, "a"), (1, None)],
        ),
        (
            ExplodeProcessor(field="tags", into="tag", position="at", keep_empty=True),
            "id, at, tag",
            "id int, at int, tag string",
            [(1, 0, "a"), (1, 1, None), (2, None, None)],
        ),
        (
            ExplodeProcessor(field="m", key="k", value="v", keep_empty=True),
            "id, k, v",
            "id int, k string, v int",
            [(1, "x", 1), (1, "y", 2), (2, None, None)],
        ),
        (
            ExplodeProcessor(field="o.items", position="line"),
            "id, o.items AS all, line, items",
            "id int, all array<struct<sku:string>>, line int, items struct<sku:string>",
            [(1, [("s",)], 0, ("s",))],
        ),
    ],
)
def test_elements(
    frames: Frames, tmp_path: Path, step: ExplodeProcessor, kept: str, schema: str, rows: list[Any]
) -> None:
    static, streamed = frames(EVENTS, SCHEMA)
    columns = kept.split(", ")
    assert shape(step.apply(static).selectExpr(*columns)) == schema
    assert list(map(tuple, step.apply(static).selectExpr(*columns).collect())) == rows
    assert list(map(tuple, run(step.apply(streamed).selectExpr(*columns), tmp_path))) == rows


def test_an_element_stands_where_the_array_was(empty: Empty) -> None:
    df = empty(SCHEMA)
    assert ExplodeProcessor(field="tags", into="t").apply(df).columns == ["id", "t", "m", "o"]
    assert ExplodeProcessor(field="m").apply(df).columns == ["id", "tags", "key", "value", "o"]
    assert ExplodeProcessor(field="o.items").apply(df).columns == ["id", "tags", "m", "o", "items"]


@pytest.mark.parametrize(
    ("step", "path", "code"),
    [
        (ExplodeProcessor(field="tag"), "field", "unknown_column"),
        (ExplodeProcessor(field="id"), "field", "sql_type"),
        (ExplodeProcessor(field="o"), "field", "sql_type"),
        (ExplodeProcessor(field="tags", into="ID"), "into", "duplicate_column"),
        (ExplodeProcessor(field="tags", position="tags"), "into", "duplicate_column"),
        (ExplodeProcessor(field="m", key="id"), "key", "duplicate_column"),
        (ExplodeProcessor(field="m", into="x"), "into", "invalid_value"),
    ],
)
def test_what_cannot_be(empty: Empty, step: ExplodeProcessor, path: str, code: str) -> None:
    problem = refusal(step.apply, empty(SCHEMA))
    assert (problem.path, problem.code) == (path, code)
