"""Nexmark: a test run, a backlog and a live flow that crashes all give what DuckDB answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.trials.samples import MOST_EVENTS
from tests.flows import Streams
from tests.oracle import ways
from tests.oracle.events import AUCTIONS, BIDS, NIGHTLY, PERSONS, SCHEMAS, Events, generate
from tests.oracle.models import EPOCH
from tests.oracle.nexmark import QUERIES, ask, write_side_input
from tests.oracle.rows import rows_of

pytestmark = pytest.mark.slow

SIZES = {"persons": PERSONS, "auctions": AUCTIONS, "bids": BIDS}
PARTS, BATCHES = 3, 12 if NIGHTLY else 3
LIVE = QUERIES.keys() if NIGHTLY else {"q0", "q3"}
"""Queries that also run live with a crash: events as they are, and a join. Windows of each kind, sessions and
`dedupe` do so in `test_state.py`, and q5 in `test_killed.py`, with a kill -9."""


@pytest.fixture(scope="module")
def events() -> Events:
    return generate()


@pytest.mark.parametrize("name", QUERIES)
def test_all_ways_give_what_the_oracle_says(
    spark: SparkSession, events: Events, tmp_path: Path, name: str
) -> None:
    write_side_input(tmp_path / "side_input.csv")
    job = QUERIES[name].job(tmp_path / "side_input.csv")

    def oracle(streams: ways.Events) -> ways.Expected:
        answer = ask(QUERIES[name], streams)
        assert answer.num_rows
        return ways.Expected(answer.schema.names, rows_of(answer))

    cuts = [events.fifties * i // PARTS for i in range(PARTS + 1)]
    ways.agree(
        spark,
        job,
        oracle,
        small=events.first(min(events.fifties, MOST_EVENTS // SIZES[job.stream])).streams,
        parts=[events.part(first, last) for first, last in pairwise(cuts)],
        root=tmp_path,
        max_events=events.streams[job.stream].num_rows // BATCHES if name in LIVE else None,
    )


def test_q12_goes_by_the_time_of_append(spark: SparkSession, events: Events, tmp_path: Path) -> None:
    """q12: bids of each bidder in a second of the clock. The oracle asks the stream when it got them."""
    step = {"type": "window", "size": "1s", "keys": ["bidder"], "aggregates": {"bids": "count(*)"}}
    job = ways.Job([step], {"bids": SCHEMAS["bids"]})
    small = events.first(20).streams["bids"]
    times = sorted(small.column("date_time").to_pylist())
    tried, columns = ways.as_test(spark, job, {"bids": small}, times=times)
    ways.expect("test run", _counted(zip(times, small.column("bidder").to_pylist(), strict=True)), tried)

    parts = [events.part(first, first + 10) for first in range(0, 30, 10)]
    for way in ("backlog", "live") if NIGHTLY else ("backlog",):
        root = tmp_path / way
        if way == "live":
            actual = ways.dribbled(spark, job, columns, parts, root, max_events=200)
        else:
            actual = ways.backlog(spark, job, columns, ways.whole(parts), root)
        log = Streams(root).make("bids", schema=SCHEMAS["bids"])
        appended = [
            (EPOCH + timedelta(microseconds=chunk.time_us), bidder)
            for chunk in log.read(0)
            for bidder in chunk.batch.column("bidder").to_pylist()
        ]
        ways.expect(way, _counted(appended), actual)


def _counted(bids: Iterable[tuple[datetime, int]]) -> ways.Expected:
    found = Counter((at.replace(microsecond=0, tzinfo=None), bidder) for at, bidder in bids)
    rows = [(start, start + timedelta(seconds=1), bidder, n) for (start, bidder), n in found.items()]
    return ways.Expected(["window_start", "window_end", "bidder", "bids"], rows)
