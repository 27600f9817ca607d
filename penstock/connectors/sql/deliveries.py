"""The table that remembers delivered batches, in the transaction that has written their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.connectors.base import DeliveryId, Rejected
from penstock.connectors.sql.client import TableName
from penstock.connectors.sql.database import Database
from penstock.connectors.sql.target import create_once

KEPT = 1000
"""Batches of a sink that are remembered. A batch is repeated only before the next one is delivered."""

KEPT_DAYS = 30
"""Days for which batches are remembered that were counted anew."""

EVERY = 100
"""Old batches are forgotten once in so many."""

KEY = ("pipeline", "sink", "lineage", "batch")
TEXTS = {
    "postgresql": ("text", "text", "timestamptz"),
    "mysql": ("VARCHAR(255)", "LONGTEXT", "TIMESTAMP NULL"),
    "sqlite": ("TEXT", "TEXT", "TIMESTAMP"),
}
AGED = {
    "postgresql": f"now() - interval '{KEPT_DAYS} days'",
    "mysql": f"UTC_TIMESTAMP() - INTERVAL {KEPT_DAYS} DAY",
    "sqlite": f"datetime('now', '-{KEPT_DAYS} days')",
}


@dataclass(frozen=True)
class Deliveries:
    """The batches that a database has."""

    database: Database
    table: TableName

    def ensure(self) -> None:
        """Create the table if it is missing."""
        if self.database.columns(self.table):
            return
        short, long, moment = TEXTS[self.database.place.engine]
        columns = dict.fromkeys(KEY[:3], short) | {
            "batch": "bigint", "events": "bigint", "rejected": long, "delivered_at": moment,
        }  # fmt: skip
        create_once(self.database, self.table, columns, KEY)

    def claim(self, delivery: DeliveryId, events: int) -> bool:
        """Enter a batch; false if it is there already.

        Another process with the same batch waits here until this transaction ends.
        """
        values = ", ".join(
            [*(self.database.text(value) for value in _texts(delivery)), str(delivery.batch), str(events)]
        )
        names = self.database.names([*KEY, "events", "delivered_at"])
        into = f"INTO {self._name} ({names}) VALUES ({values}, CURRENT_TIMESTAMP)"
        if self.database.place.engine == "mysql":
            return self.database.run(f"INSERT IGNORE {into}") > 0
        return self.database.run(f"INSERT {into} ON CONFLICT DO NOTHING") > 0

    def reject(self, delivery: DeliveryId, rejected: Sequence[Rejected]) -> None:
        """Remember the events that were not taken, so that a batch that is repeated reports them again."""
        text = json.dumps([vars(each) for each in rejected], default=_iso)
        self.database.run(
            f"UPDATE {self._name} SET events = events - {len(rejected)}, "
            f"rejected = {self.database.text(text)} WHERE {self._is(delivery)}"
        )

    def known(self, delivery: DeliveryId) -> tuple[int, list[Rejected]]:
        """The number of events of a batch that was delivered, and those that were not taken."""
        query = f"SELECT events, rejected FROM {self._name} WHERE {self._is(delivery)}"
        for events, text in self.database.rows(query):
            return int(events), [_restored(**each) for each in json.loads(text or "[]")]
        return 0, []

    def prune(self, delivery: DeliveryId) -> None:
        """Forget old batches, now and then."""
        if delivery.batch % EVERY:
            return
        name, text = self.database.name, self.database.text
        own = f"{name('pipeline')} = {text(delivery.pipeline)} AND {name('sink')} = {text(delivery.sink)}"
        same = f"{name('lineage')} = {text(delivery.lineage)}"
        aged = AGED[self.database.place.engine]
        self.database.run(
            f"DELETE FROM {self._name} WHERE {own} AND ({same} AND {name('batch')} < {delivery.batch - KEPT} "
            f"OR NOT {same} AND delivered_at < {aged})"
        )

    @property
    def _name(self) -> str:
        return self.database.table(self.table)

    def _is(self, delivery: DeliveryId) -> str:
        name, text = self.database.name, self.database.text
        parts = [
            f"{name(column)} = {text(value)}" for column, value in zip(KEY[:3], _texts(delivery), strict=True)
        ]
        return " AND ".join([*parts, f"{name('batch')} = {delivery.batch}"])


def _texts(delivery: DeliveryId) -> tuple[str, str, str]:
    return delivery.pipeline, delivery.sink, delivery.lineage


def _iso(moment: datetime) -> str:
    return moment.isoformat()


def _restored(row: str, code: str, message: str, event: dict[str, Any] | None) -> Rejected:
    if event is not None and event.get("time") is not None:
        event["time"] = datetime.fromisoformat(event["time"])
    return Rejected(row, code, message, event)
