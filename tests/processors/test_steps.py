from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from pyspark.sql import DataFrame

from penstock.errors import Invalid
from penstock.processors.base import Processor
from penstock.processors.drop_fields import DropFieldsProcessor
from penstock.processors.filter import FilterProcessor
from penstock.processors.flatten import FlattenProcessor
from penstock.processors.map import MapProcessor
from penstock.processors.rename import RenameProcessor
from penstock.processors.sql import SqlProcessor
from tests.processors.conftest import Frames
from tests.sql.helpers import refusal, run

Empty = Callable[[str], DataFrame]

SCHEMA = (
    "id BIGINT, amount DOUBLE, country STRING, "
    "address STRUCT<zip: STRING, street: STRING>, tags ARRAY<STRING>"
)
EVENTS: list[dict[str, Any]] = [
    {"id": 1, "amount": 2.0, "country": "de", "address": {"zip": "1", "street": "x"}, "tags": ["a", "b"]},
    {"id": 2, "amount": -1.0, "country": "fr", "address": None, "tags": []},
    {"id": 3, "amount": None, "country": None, "address": {"zip": None, "street": "y"}, "tags": None},
]

STEPS: list[tuple[Processor, str, list[tuple[Any, ...]]]] = [
    (
        SqlProcessor(query="SELECT id, amount * 2 AS twice FROM input WHERE amount > 0"),
        "id bigint, twice double",
        [(1, 4.0)],
    ),
    (
        FilterProcessor(where="amount > 0 OR exists(tags, t -> t = 'a')"),
        "id bigint, amount double, country string, "
        "address struct<zip:string,street:string>, tags array<string>",
        [(1, 2.0, "de", ("1", "x"), ["a", "b"])],
    ),
    (
        MapProcessor(set={"id": "id + 10", "n": "id"}, keep=False),
        "id bigint, n bigint",
        [(11, 1), (12, 2), (13, 3)],
    ),
    (
        RenameProcessor(fields={"address.zip": "postcode", "id": "amount", "amount": "id"}),
        "amount bigint, id double, country string, address struct<postcode:string,street:string>, "
        "tags array<string>",
        [
            (1, 2.0, "de", ("1", "x"), ["a", "b"]),
            (2, -1.0, "fr", None, []),
            (3, None, None, (None, "y"), None),
        ],
    ),
    (
        DropFieldsProcessor(fields=["address.street", "tags", "COUNTRY"]),
        "id bigint, amount double, address struct<zip:string>",
        [(1, 2.0, ("1",)), (2, -1.0, None), (3, None, (None,))],
    ),
    (
        FlattenProcessor(fields=["address", "tags"], arrays="json"),
        "id bigint, amount double, country string, address_zip string, address_street string, tags string",
        [
            (1, 2.0, "de", "1", "x", '["a","b"]'),
            (2, -1.0, "fr", None, None, "[]"),
            (3, None, None, None, "y", None),
        ],
    ),
]


def shape(df: DataFrame) -> str:
    return ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in df.schema.fields)


@pytest.mark.parametrize(("step", "schema", "rows"), STEPS, ids=lambda s: getattr(s, "type", ""))
def test_step_does_the_same_on_frames_and_streams(
    frames: Frames, tmp_path: Path, step: Processor, schema: str, rows: list[tuple[Any, ...]]
) -> None:
    static, streamed = frames(EVENTS, SCHEMA)
    assert shape(step.apply(static)) == schema
    assert sorted(map(tuple, step.apply(static).collect())) == rows
    result = step.apply(streamed)
    assert result.isStreaming
    assert shape(result) == schema
    assert sorted(map(tuple, run(result, tmp_path))) == rows


@pytest.mark.parametrize("kind", [type(step) for step, _, _ in STEPS])
def test_declaration_is_complete(kind: type[Processor]) -> None:
    example = yaml.safe_load(kind.example)
    assert kind.model_validate(example).model_dump()["type"] == example["type"]
    assert all(f.description for name, f in kind.model_fields.items() if name != "type")
    with pytest.raises(ValidationError):
        kind.model_validate({**example, "nonsense": 1})


def test_steps_follow_each_other_on_an_empty_stream(empty: Empty) -> None:
    df = empty(SCHEMA)
    for step in (
        FilterProcessor(where="amount > 0"),
        FlattenProcessor(),
        RenameProcessor(fields={"address_zip": "zip"}),
        MapProcessor(set={"gross": "amount * 1.1"}),
        SqlProcessor(query="FROM input |> EXTEND upper(zip) AS z |> DROP zip"),
        DropFieldsProcessor(fields=["tags"]),
    ):
        df = step.apply(df)
    assert df.columns == ["id", "amount", "country", "address_street", "gross", "z"]


def test_sql_tells_its_field(empty: Empty) -> None:
    problem = refusal(SqlProcessor(query="SELECT nope FROM input").apply, empty(SCHEMA))
    assert (problem.code, problem.path) == ("unknown_column", "query")


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("amount", "sql_type"),
        ("country", "sql_type"),
        ("amont > 0", "unknown_column"),
        ("amount >", "sql_syntax"),
        ("count(*) > 1", "stateful_sql"),
        ("reflect('a', 'b') = 'c'", "sql_forbidden"),
    ],
)
def test_filter_needs_a_condition(empty: Empty, where: str, code: str) -> None:
    problem = refusal(FilterProcessor(where=where).apply, empty(SCHEMA))
    assert (problem.code, problem.path) == (code, "where")


def test_map_replaces_in_place_and_adds_at_the_end(frames: Frames) -> None:
    static, _ = frames(EVENTS[:1], SCHEMA)
    step = MapProcessor(set={"new.one": "id", "AMOUNT": "id + amount", "id": "amount"})
    (row,) = step.apply(static).select("id", "AMOUNT", "`new.one`").collect()
    assert tuple(row) == (2.0, 3.0, 1)
    assert step.apply(static).columns == ["id", "AMOUNT", "country", "address", "tags", "new.one"]


def test_map_tells_every_mistake_at_its_name(empty: Empty) -> None:
    step = MapProcessor(
        set={"x": "nope", "X": "1", "y": "sum(id)", "z": "explode(tags)", "ok": "id", "s": "*"}
    )
    with pytest.raises(Invalid) as caught:
        step.apply(empty(SCHEMA))
    assert {(p.path, p.code) for p in caught.value.problems} == {
        ("set.x", "unknown_column"),
        ("set.y", "stateful_sql"),
        ("set.z", "sql_forbidden"),
        ("set.s", "sql_error"),
    }
    problem = refusal(MapProcessor(set={"x": "1", "X": "2"}).apply, empty(SCHEMA))
    assert (problem.path, problem.code) == ("set.X", "duplicate_column")


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({"amont": "x"}, "fields.amont", "unknown_column"),
        ({"address.zipp": "x"}, "fields.address.zipp", "unknown_column"),
        ({"tags.a": "x"}, "fields.tags.a", "unknown_column"),
        ({"id": "amount"}, "fields.id", "duplicate_column"),
        ({"id": "AMOUNT"}, "fields.id", "duplicate_column"),
        ({"id": "x", "amount": "x"}, "fields.amount", "duplicate_column"),
        ({"id": "x", "ID": "y"}, "fields.ID", "duplicate_column"),
        ({"address.zip": "street"}, "fields.address.zip", "duplicate_column"),
        ({"id": ""}, "fields.id", "empty_name"),
    ],
)
def test_rename_refuses(empty: Empty, fields: dict[str, str], path: str, code: str) -> None:
    problem = refusal(RenameProcessor(fields=fields).apply, empty(SCHEMA))
    assert (problem.path, problem.code) == (path, code)
    if code == "unknown_column":
        assert "columns: id" in (problem.hint or "")


def test_rename_and_drop_find_odd_names(empty: Empty) -> None:
    df = empty(
        "`a.b` INT, a STRUCT<b: INT, `c.d`: STRUCT<`e``f`: INT, g: INT>, h: VARIANT NOT NULL>, `x``y` INT"
    )
    renamed = RenameProcessor(fields={"a.b": "top", "a.c.d.e`f": "deep", "a": "outer", "x`y": "x y"}).apply(
        df
    )
    assert shape(renamed) == "top int, outer struct<b:int,c.d:struct<deep:int,g:int>,h:variant>, x y int"
    dropped = DropFieldsProcessor(fields=["a.b", "a.c.d.e`f", "x`y"]).apply(df)
    assert shape(dropped) == "a struct<b:int,c.d:struct<g:int>,h:variant>"
    assert shape(DropFieldsProcessor(fields=["a.c.d.g", "a.c.d"]).apply(df)) == (
        "a.b int, a struct<b:int,h:variant>, x`y int"
    )


@pytest.mark.parametrize(
    ("fields", "path", "code", "hint"),
    [
        (["id", "amont"], "fields[1]", "unknown_column", "'amount'"),
        (["address.strret"], "fields[0]", "unknown_column", "'address.street'"),
        (["id", "amount", "country", "address", "tags"], "fields[4]", "empty_event", "at least one"),
        (["address.zip", "id", "address.street"], "fields[2]", "empty_event", "remove 'address' itself"),
    ],
)
def test_drop_fields_refuses(empty: Empty, fields: list[str], path: str, code: str, hint: str) -> None:
    problem = refusal(DropFieldsProcessor(fields=fields).apply, empty(SCHEMA))
    assert (problem.path, problem.code) == (path, code)
    assert hint in (problem.hint or "")
