"""The table that records delivered batches, written in the same transaction as their rows."""

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
"""Number of batches retained per sink. A batch is retried only until the next one is delivered."""

KEPT_DAYS = 30
"""Days for which batches of earlier lineages, from before a pipeline started over, are retained."""

EVERY = 100
"""Old batches are deleted once every this many batches."""

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
    """The delivered batches that a database has recorded."""

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
        """Record a batch; false if it is already recorded.

        Another process with the same batch blocks here until this transaction ends.
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
        """Record the rejected events of a batch, so that a retry of the batch reports them again."""
        text = json.dumps([vars(each) for each in rejected], default=_iso)
        self.database.run(
            f"UPDATE {self._name} SET events = events - {len(rejected)}, "
            f"rejected = {self.database.text(text)} WHERE {self._is(delivery)}"
        )

    def known(self, delivery: DeliveryId) -> tuple[int, list[Rejected]]:
        """The number of events of a delivered batch, and its rejected events."""
        query = f"SELECT events, rejected FROM {self._name} WHERE {self._is(delivery)}"
        for events, text in self.database.rows(query):
            return int(events), [_restored(**each) for each in json.loads(text or "[]")]
        return 0, []

    def prune(self, delivery: DeliveryId) -> None:
        """Delete the records of old batches, once every `EVERY` batches."""
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
