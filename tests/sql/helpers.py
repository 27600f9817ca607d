from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Invalid, Problem

SCHEMA = (
    "a INT, b STRING, arr ARRAY<INT>, m MAP<STRING, INT>, "
    "s STRUCT<p: INT, q: STRUCT<r: STRING>>, ts TIMESTAMP"
)
EVENTS: list[dict[str, Any]] = [
    {
        "a": 1,
        "b": "x",
        "arr": [1, 2],
        "m": {"k": 1},
        "s": {"p": 1, "q": {"r": "z"}},
        "ts": "2024-05-01T00:00:00",
    },
    {"a": 2, "b": "y", "arr": [3], "m": {}, "s": None, "ts": None},
]


def stream(spark: SparkSession, folder: Path, events: list[dict[str, Any]], schema: str) -> DataFrame:
    """A streaming frame of these events; with none, the stream of an empty folder."""
    folder.mkdir(exist_ok=True)
    if events:
        (folder / "events.json").write_text("\n".join(json.dumps(e) for e in events))
    return spark.readStream.schema(schema).json(str(folder))


def run(df: DataFrame, folder: Path) -> list[Any]:
    """What comes out of a streaming frame when everything there is has gone through, batch by batch."""
    rows: list[Any] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return rows


def refusal(call: Any, *arguments: Any, **named: Any) -> Problem:
    """The one problem of a call that must be refused."""
    with pytest.raises(Invalid) as caught:
        call(*arguments, **named)
    (problem,) = caught.value.problems
    told = f"{problem.message} {problem.hint}"
    for noise in ("\n", "at org.", "== SQL", "SQLSTATE", "Project", "+- "):
        assert noise not in told
    assert len(problem.message) < 300
    return problem
