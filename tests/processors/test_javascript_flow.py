"""A script in a flow, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.cli.commands import wait_for
from tests.flows import Streams, keeper, letters, pipeline, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = """
function processBatch(events) {
  for (const event of events) {
    if (event.name === 'bad') throw new Error('no such name')
    event.name = event.name.toUpperCase()
    event.$meta.key = event.id
    if (event.name === 'ODD') event.$meta.sink = 'audit'
  }
}
"""


def test_a_script_changes_events_and_chooses_their_sink(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    schema = "id BIGINT, name STRING, at TIMESTAMP_NTZ, tags MAP<STRING, ARRAY<BIGINT>>"
    source = streams.make("in", schema=schema)
    main, audit = (streams.make(id, schema=schema) for id in ("main", "audit"))
    raw = pipeline(
        source={"type": "stream", "stream": "in"},
        processors=[
            {"id": "upper", "type": "javascript", "inline": SCRIPT},
            {"id": "positive", "type": "filter", "where": "id > 0"},
        ],
        sinks=[
            {"id": "main", "type": "stream", "stream": "main"},
            {"id": "audit", "type": "stream", "stream": "audit"},
        ],
    )
    large = 2**60 + 1
    tags = pa.array([[("a", [large, None])], None, [], []], pa.map_(pa.string(), pa.list_(pa.int64())))
    columns = {
        "id": pa.array([1, 2, 3, large]),
        "name": ["one", "bad", "odd", "ä😀"],
        "at": pa.array([0, 1, 2, None], pa.timestamp("us")),
        "tags": tags,
        "_key": pa.array([b"a", b"b", b"c", b"d"]),
    }
    source.append(pa.record_batch(columns))
    with running(keeper(spark, raw, tmp_path / "ck", site=streams.site())) as kept:
        wait_for("the batch", lambda: kept.state.ops.get("batches") == 1)
    everything = [(1, "ONE", b"1"), (3, "ODD", b"3"), (large, "Ä😀", str(large).encode())]
    for log, expected in ((main, [everything[0], everything[2]]), (audit, everything)):
        (chunk,) = log.read(0)
        assert chunk.batch is not None
        rows = chunk.batch.to_pylist()
        assert [(row["id"], row["name"], row["_key"]) for row in rows] == expected
        assert rows[0]["tags"] == [("a", [large, None])]
    (letter,) = letters(streams)
    assert (letter["code"], letter["step"], letter["key"]) == ("js_error", "upper", b"b")
    assert letter["reason"] == "line 4: Error: no such name"
    counts = kept.state.ops["processors"]["upper"]
    assert (counts["in"], counts["out"], counts["errors"]) == (4, 3, 1)
