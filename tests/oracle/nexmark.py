"""The queries of Nexmark as pipelines, each beside the same question to DuckDB.

Nexmark asks some of them of all time: the best bid of an auction, the last ten sales of a seller, a join of
whole streams. A stream has no end, so a pipeline remembers a stretch of it. Those queries are asked of
windows here, and say so; the question to DuckDB is the same one. Times are out of order by less than the
`allowed_lateness` of all of them, so nothing is late; `test_state.py` is about what is.

Left out: q10 (writes files by hour: the `file` sink, not a query), q15 to q17 (`count(DISTINCT …)` over a
day, which a window refuses), q21 and q22 (functions of strings, event by event as in q14). q12 goes by the
clock, so its oracle has to know when events were appended: it is in `test_nexmark.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tests.oracle.events import SCHEMAS
from tests.oracle.ways import Job

LATENESS = "5s"
KEYS = 50
"""How many keys the side input of q13 has; one in five has no value."""

MACROS = """
CREATE MACRO floor_to(t, seconds) AS make_timestamp(epoch_us(t) // (seconds * 1000000) * (seconds * 1000000));
CREATE MACRO near(one, other, seconds) AS abs(epoch_us(one) - epoch_us(other)) <= seconds * 1000000;
"""


@dataclass(frozen=True)
class Query:
    """A query as steps of a pipeline, and for DuckDB."""

    streams: tuple[str, ...]
    """The stream it reads, then those it joins."""
    steps: list[Mapping[str, Any]]
    oracle: str
    about: str = field(default="")

    def job(self, side_input: Path) -> Job:
        """The query as what can be run."""
        steps = [
            {**step, "file": {"path": str(side_input)}} if step["type"] == "lookup" else step
            for step in self.steps
        ]
        return Job(steps, {name: SCHEMAS[name] for name in self.streams})


def ask(query: Query, streams: Mapping[str, pa.RecordBatch]) -> pa.Table:
    """What DuckDB answers."""
    with database(streams) as connection:
        return connection.sql(query.oracle).to_arrow_table()


def database(streams: Mapping[str, pa.RecordBatch]) -> duckdb.DuckDBPyConnection:
    """A DuckDB with the streams as tables, their times in UTC without a zone."""
    connection = duckdb.connect()
    connection.execute(MACROS)
    for name, batch in streams.items():
        naive = pa.schema(
            [
                each.with_type(pa.timestamp("us")) if pa.types.is_timestamp(each.type) else each
                for each in batch.schema
            ]
        )
        connection.register(f"{name}_events", pa.table(batch).cast(naive))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_events")
    connection.execute(
        f"CREATE TABLE side_input AS SELECT range AS key, 'v' || range AS value FROM range({KEYS}) "
        "WHERE range % 5 > 0"
    )
    return connection


def write_side_input(path: Path) -> None:
    """The table of q13, for a `lookup`."""
    path.write_text("key,value\n" + "".join(f"{key},v{key}\n" for key in range(KEYS) if key % 5))


def _window(size: str, keys: list[str], **how: Any) -> dict[str, Any]:
    lateness = {"allowed_lateness": LATENESS}
    return {"type": "window", "time": "date_time", "size": size, "keys": keys, **lateness, **how}


# A bid counts while its auction is open. An auction lasts at most 30 s.
_OPEN = {
    "id": "open",
    "type": "join",
    "stream": "auctions",
    "into": "a",
    "on": "auction = a.id AND date_time >= a.date_time AND date_time <= a.expires",
    "within": "30s",
    "time": "date_time",
    "stream_time": "date_time",
    "allowed_lateness": LATENESS,
}
_OPEN_BIDS = """FROM bids b JOIN auctions a ON b.auction = a.id AND b.date_time >= a.date_time
    AND b.date_time <= a.expires AND near(b.date_time, a.date_time, 30)"""

QUERIES: dict[str, Query] = {
    "q0": Query(
        ("bids",),
        [{"type": "sql", "query": "SELECT * FROM input"}],
        "SELECT * FROM bids",
        "all bids as they are",
    ),
    "q1": Query(
        ("bids",),
        [
            {
                "type": "sql",
                "query": "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20, 3)) AS price, date_time, "
                "extra FROM input",
            }
        ],
        "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20, 3)) AS price, date_time, extra FROM bids",
        "prices in another currency",
    ),
    "q2": Query(
        ("bids",),
        [
            {"type": "filter", "where": "auction % 7 = 0"},
            {"type": "map", "keep": False, "set": {"auction": "auction", "price": "price"}},
        ],
        "SELECT auction, price FROM bids WHERE auction % 7 = 0",
        "bids on some auctions",
    ),
    "q3": Query(
        ("auctions", "persons"),
        [
            {"type": "filter", "where": "category = 10"},
            {
                "id": "seller",
                "type": "join",
                "stream": "persons",
                "into": "p",
                "on": {"seller": "id"},
                "within": "20s",
                "time": "date_time",
                "stream_time": "date_time",
                "allowed_lateness": LATENESS,
            },
            {
                "type": "sql",
                "query": "SELECT p.name, p.city, p.state, id FROM input WHERE p.state IN ('OR', 'ID', 'CA')",
            },
        ],
        "SELECT p.name, p.city, p.state, a.id FROM auctions a JOIN persons p ON a.seller = p.id "
        "AND near(a.date_time, p.date_time, 20) WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
        "auctions of a category by people of some states; of those who registered 20 s before at most",
    ),
    "q4": Query(
        ("bids", "auctions"),
        [
            _OPEN,
            {"type": "sql", "query": "SELECT auction, a.category, price, date_time FROM input"},
            _window("30s", ["auction", "category"], aggregates={"final": "max(price)"}),
            {
                "type": "window",
                "time": "window_end",
                "size": "1m",
                "keys": ["category"],
                "aggregates": {"average": "avg(final)"},
            },
        ],
        f"""WITH best AS (SELECT floor_to(b.date_time, 30) AS s, auction, category, max(price) AS final
            {_OPEN_BIDS} GROUP BY ALL)
        SELECT floor_to(s, 60) AS window_start, floor_to(s, 60) + INTERVAL 1 MINUTE AS window_end, category,
            avg(final) AS average FROM best GROUP BY ALL""",
        "average of the best bids by category; the best of an auction in 30 s, the average of a minute",
    ),
    "q5": Query(
        ("bids",),
        [
            _window("10s", ["auction"], kind="hopping", slide="2s", aggregates={"num": "count(*)"}),
            {
                "type": "window",
                "time": "window_end",
                "size": "2s",
                "aggregates": {"most": "max(num)", "hot": "collect_list(struct(auction, num))"},
            },
            {"type": "explode", "field": "hot"},
            {"type": "filter", "where": "hot.num = most"},
            {"type": "sql", "query": "SELECT window_end, hot.auction, hot.num FROM input"},
        ],
        """WITH counted AS (
            SELECT floor_to(date_time, 2) + (i + 1) * INTERVAL 2 SECOND AS window_end, auction,
                count(*) AS num FROM bids, (VALUES (0), (1), (2), (3), (4)) AS hops (i)
            GROUP BY ALL)
        SELECT window_end, auction, num FROM counted
        QUALIFY num = max(num) OVER (PARTITION BY window_end)""",
        "the auctions with most bids in the last 10 s, every 2 s",
    ),
    "q6": Query(
        ("bids", "auctions"),
        [
            _OPEN,
            {"type": "sql", "query": "SELECT auction, a.seller, price, date_time FROM input"},
            _window("30s", ["auction", "seller"], aggregates={"final": "max(price)"}),
            {
                "type": "window",
                "time": "window_end",
                "size": "5m",
                "keys": ["seller"],
                "aggregates": {"sales": "collect_list(struct(window_end AS sold, auction, final))"},
            },
            {
                "type": "sql",
                "query": "SELECT window_end, seller, aggregate(slice(sort_array(sales, false), 1, 10), 0L, "
                "(sum, sale) -> sum + sale.final) / least(size(sales), 10) AS average FROM input",
            },
        ],
        f"""WITH best AS (SELECT floor_to(b.date_time, 30) AS s, auction, seller, max(price) AS final
            {_OPEN_BIDS} GROUP BY ALL),
        recent AS (SELECT floor_to(s, 300) + INTERVAL 5 MINUTE AS window_end, seller, final FROM best
            QUALIFY row_number() OVER (
                PARTITION BY floor_to(s, 300), seller ORDER BY s DESC, auction DESC) <= 10)
        SELECT window_end, seller, avg(final) AS average FROM recent GROUP BY ALL""",
        "average of the last ten sales of each seller in five minutes; a sale is the best bid of 30 s",
    ),
    "q7": Query(
        ("bids",),
        [
            _window("10s", [], emit="events"),
            {
                "type": "javascript",
                "inline": """
                    function processBatch(bids) {
                      const best = bids.reduce((best, bid) => Math.max(best, bid.price), 0)
                      return bids.filter(bid => bid.price === best)
                    }
                """,
                "limits": {"cpu_ms": 5000, "timeout_ms": 30000},
            },
            {"type": "drop_fields", "fields": ["window_start", "channel", "url"]},
        ],
        """SELECT floor_to(date_time, 10) + INTERVAL 10 SECOND AS window_end, auction, bidder, price,
            date_time, extra FROM bids
        QUALIFY price = max(price) OVER (PARTITION BY floor_to(date_time, 10))""",
        "the highest bids of each 10 s; a script sees all bids of a window, in place of a join",
    ),
    "q8": Query(
        ("persons", "auctions"),
        [
            {
                "id": "offers",
                "type": "join",
                "stream": "auctions",
                "into": "a",
                "on": "id = a.seller AND unix_micros(date_time) div 10000000 = "
                "unix_micros(a.date_time) div 10000000",
                "within": "10s",
                "time": "date_time",
                "stream_time": "date_time",
                "allowed_lateness": LATENESS,
            },
            _window("10s", ["id", "name"], aggregates={"auctions": "count(*)"}),
        ],
        """SELECT floor_to(p.date_time, 10) AS window_start, floor_to(p.date_time, 10) + INTERVAL 10 SECOND
            AS window_end, p.id, p.name, count(*) AS auctions
        FROM persons p JOIN auctions a
            ON p.id = a.seller AND floor_to(p.date_time, 10) = floor_to(a.date_time, 10) GROUP BY ALL""",
        "people who registered and offered auctions in the same 10 s",
    ),
    "q9": Query(
        ("bids", "auctions"),
        [
            _OPEN,
            _window(
                "1m",
                ["auction"],
                aggregates={
                    "winner": "max_by(struct(bidder, price, date_time, a.category), "
                    "struct(price, -unix_micros(date_time)))"
                },
            ),
            {"type": "flatten"},
            {"type": "rename", "fields": {"winner_bidder": "bidder", "winner_price": "price"}},
        ],
        f"""SELECT floor_to(b.date_time, 60) AS window_start, floor_to(b.date_time, 60) + INTERVAL 1 MINUTE
            AS window_end, auction, bidder, price, b.date_time AS winner_date_time,
            category AS winner_category
        {_OPEN_BIDS} QUALIFY row_number() OVER (
            PARTITION BY auction, floor_to(b.date_time, 60) ORDER BY price DESC, b.date_time) = 1""",
        "the winning bid of each auction; in each minute",
    ),
    "q11": Query(
        ("bids",),
        [
            {
                "type": "window",
                "kind": "session",
                "gap": "10s",
                "time": "date_time",
                "allowed_lateness": LATENESS,
                "keys": ["bidder"],
                "aggregates": {"bids": "count(*)"},
            }
        ],
        """WITH marked AS (SELECT bidder, date_time, date_time - lag(date_time, 1)
            OVER (PARTITION BY bidder ORDER BY date_time) > INTERVAL 10 SECOND AS new FROM bids),
        numbered AS (SELECT bidder, date_time,
            sum(CASE WHEN new THEN 1 ELSE 0 END) OVER (PARTITION BY bidder ORDER BY date_time) AS session
            FROM marked)
        SELECT min(date_time) AS window_start, max(date_time) + INTERVAL 10 SECOND AS window_end, bidder,
            count(*) AS bids FROM numbered GROUP BY bidder, session""",
        "bids of each bidder until a pause of 10 s",
    ),
    "q13": Query(
        ("bids",),
        [
            {"type": "map", "set": {"key": f"auction % {KEYS}"}},
            {"type": "lookup", "on": {"key": "key"}, "columns": "value STRING", "missing": "drop"},
            {"type": "sql", "query": "SELECT auction, bidder, price, date_time, value FROM input"},
        ],
        f"""SELECT auction, bidder, price, date_time, value FROM bids
        JOIN side_input ON auction % {KEYS} = key""",
        "bids with a value of a table",
    ),
    "q14": Query(
        ("bids",),
        [
            {
                "type": "sql",
                "query": "SELECT auction, bidder, price * 0.908 AS price, "
                "CASE WHEN minute(date_time) % 3 = 0 THEN 'day' "
                "WHEN hour(date_time) < 22 THEN 'night' ELSE 'other' END AS kind, date_time, "
                "extra, 0L AS c_counts FROM input WHERE price * 0.908 > 1000",
            },
            {
                "type": "javascript",
                "inline": """
                    function processBatch(bids) {
                      return bids.map(bid => ({...bid, c_counts: bid.extra.split('c').length - 1}))
                    }
                """,
                "limits": {"cpu_ms": 5000, "timeout_ms": 30000},
            },
        ],
        """SELECT auction, bidder, price * 0.908 AS price, CASE WHEN minute(date_time) % 3 = 0 THEN 'day'
            WHEN hour(date_time) < 22 THEN 'night' ELSE 'other' END AS kind, date_time, extra,
            CAST(length(extra) - length(replace(extra, 'c', '')) AS BIGINT) AS c_counts
        FROM bids WHERE price * 0.908 > 1000""",
        "what can be computed of one bid, some of it by a script",
    ),
    "q18": Query(
        ("bids",),
        [
            _window(
                "1m",
                ["bidder", "auction"],
                aggregates={"last": "max_by(struct(price, channel, date_time), struct(date_time, price))"},
            ),
            {"type": "flatten", "fields": ["last"]},
        ],
        """SELECT floor_to(date_time, 60) AS window_start, floor_to(date_time, 60) + INTERVAL 1 MINUTE
            AS window_end, bidder, auction, price AS last_price, channel AS last_channel,
            date_time AS last_date_time FROM bids
        QUALIFY row_number() OVER (PARTITION BY bidder, auction, floor_to(date_time, 60)
            ORDER BY date_time DESC, price DESC) = 1""",
        "the last bid of each bidder on each auction; in each minute",
    ),
    "q19": Query(
        ("bids",),
        [
            _window(
                "1m",
                ["auction"],
                aggregates={
                    "top": "slice(sort_array(collect_list(struct(price, bidder, date_time)), false), 1, 10)"
                },
            ),
            {"type": "explode", "field": "top", "position": "rank"},
            {
                "type": "sql",
                "query": "SELECT window_end, auction, rank + 1L AS rank, top.price, top.bidder, "
                "top.date_time FROM input",
            },
        ],
        """SELECT floor_to(date_time, 60) + INTERVAL 1 MINUTE AS window_end, auction,
            row_number() OVER w AS rank, price, bidder, date_time FROM bids
        WINDOW w AS (PARTITION BY auction, floor_to(date_time, 60) ORDER BY price DESC, bidder DESC,
            date_time DESC) QUALIFY rank <= 10""",
        "the ten best bids on each auction; in each minute",
    ),
    "q20": Query(
        ("bids", "auctions"),
        [
            _OPEN,
            {
                "type": "sql",
                "query": "SELECT auction, bidder, price, date_time, a.item, a.reserve, a.expires, a.seller "
                "FROM input WHERE a.category = 10",
            },
        ],
        f"""SELECT auction, bidder, price, b.date_time, item, reserve, expires, seller {_OPEN_BIDS}
        WHERE category = 10""",
        "bids with their auctions, of a category; while the auction is open",
    ),
}
