"""Events of an auction house after Nexmark: people register, offer auctions, and bid.

Of fifty events one is a person, three are auctions and 46 are bids. Event time advances by `gap_ms` from one
event to the next; one event in ten is older than its place says, by up to `late_s` seconds. The same seed
gives the same events.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings

NIGHTLY = os.environ.get("PENSTOCK_TEST_NIGHTLY") == "1"
FIFTIES = 6_000 if NIGHTLY else 60
"""How many times fifty events there are: 2,760 bids, 180 auctions and 60 people; nightly a hundred times."""

SOME_EXAMPLES = settings(
    max_examples=40 if NIGHTLY else 1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""For examples of which each runs flows: to shrink one that fails would take many minutes.

By day there is one. Hypothesis tries the simplest one first, so strategies leave out those that show little.
"""

BEGIN = datetime(2026, 1, 1, 22, tzinfo=UTC)
LATE_S = 4
PERSONS, AUCTIONS, BIDS = 1, 3, 46

SCHEMAS = {
    "persons": "id BIGINT, name STRING, email STRING, city STRING, state STRING, date_time TIMESTAMP",
    "auctions": "id BIGINT, item STRING, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category INT",
    "bids": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, "
    "extra STRING",
}

TIMESTAMP = pa.timestamp("us", tz="UTC")
ARROW = {
    "persons": pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("date_time", TIMESTAMP),
        ]
    ),
    "auctions": pa.schema(
        [
            ("id", pa.int64()),
            ("item", pa.string()),
            ("initial_bid", pa.int64()),
            ("reserve", pa.int64()),
            ("date_time", TIMESTAMP),
            ("expires", TIMESTAMP),
            ("seller", pa.int64()),
            ("category", pa.int32()),
        ]
    ),
    "bids": pa.schema(
        [
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("date_time", TIMESTAMP),
            ("extra", pa.string()),
        ]
    ),
}

FIRST_ID = 1000
CATEGORIES = range(10, 15)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
NAMES = ("Ada", "Blaise", "Grace", "Kurt", "Alan", "Emmy", "Évariste", "Zoë")
CHANNELS = ("apple", "google", "facebook", "baidu", None)
ITEMS = ("clock", "chair", "lamp", "map", "vase")

Streams = dict[str, pa.RecordBatch]


@dataclass(frozen=True)
class Events:
    """The three streams, each in the order in which it is read."""

    streams: Streams
    fifties: int

    def part(self, first: int, last: int) -> Streams:
        """The events of each stream from one fifty on, before another."""
        sizes = {"persons": PERSONS, "auctions": AUCTIONS, "bids": BIDS}
        return {
            name: batch.slice(first * sizes[name], (last - first) * sizes[name])
            for name, batch in self.streams.items()
        }

    def first(self, fifties: int) -> Events:
        """The beginning of all three."""
        return Events(self.part(0, fifties), fifties)


def generate(fifties: int = FIFTIES, *, seed: int = 1, gap_ms: int = 100, late_s: int = LATE_S) -> Events:
    """Events, `fifties` times fifty of them."""
    draw = random.Random(seed)
    rows: dict[str, list[dict[str, Any]]] = {"persons": [], "auctions": [], "bids": []}
    for number in range(fifties * (PERSONS + AUCTIONS + BIDS)):
        at = BEGIN + timedelta(milliseconds=number * gap_ms, microseconds=draw.randrange(1000))
        if draw.random() < 0.1:
            at -= timedelta(microseconds=draw.randrange(late_s * 1_000_000))
        place = number % (PERSONS + AUCTIONS + BIDS)
        if place < PERSONS:
            rows["persons"].append(_person(draw, len(rows["persons"]), at))
        elif place < PERSONS + AUCTIONS:
            rows["auctions"].append(_auction(draw, len(rows["auctions"]), len(rows["persons"]), at))
        else:
            rows["bids"].append(_bid(draw, len(rows["auctions"]), len(rows["persons"]), at))
    made = {name: pa.RecordBatch.from_pylist(found, ARROW[name]) for name, found in rows.items()}
    return Events(made, fifties)


def _person(draw: random.Random, number: int, at: datetime) -> dict[str, Any]:
    name, place = draw.choice(NAMES), draw.randrange(len(STATES))
    return {
        "id": FIRST_ID + number,
        "name": name,
        "email": f"{name.lower()}{number}@example.com" if draw.random() < 0.9 else None,
        "city": CITIES[place],
        "state": STATES[place],
        "date_time": at,
    }


def _auction(draw: random.Random, number: int, persons: int, at: datetime) -> dict[str, Any]:
    initial = draw.randrange(1, 1000)
    return {
        "id": FIRST_ID + number,
        "item": draw.choice(ITEMS),
        "initial_bid": initial,
        "reserve": initial + draw.randrange(1000),
        "date_time": at,
        "expires": at + timedelta(milliseconds=draw.randrange(5_000, 30_000)),
        "seller": FIRST_ID + _recent(draw, persons, 10),
        "category": draw.choice(CATEGORIES),
    }


def _bid(draw: random.Random, auctions: int, persons: int, at: datetime) -> dict[str, Any]:
    channel = draw.choice(CHANNELS)
    return {
        "auction": FIRST_ID + _recent(draw, auctions, 12),
        "bidder": FIRST_ID + _recent(draw, persons, 40),
        "price": draw.randrange(1, 10_000),
        "channel": channel,
        "url": f"https://www.example.com/{channel}/item.htm?query=1" if channel else None,
        "date_time": at,
        "extra": "".join(draw.choices("abc ", k=draw.randrange(20))),
    }


def _recent(draw: random.Random, count: int, most: int) -> int:
    """One of the last so many, the last of them as often as all others together."""
    return count - 1 if draw.random() < 0.5 else draw.randrange(max(0, count - most), count)
