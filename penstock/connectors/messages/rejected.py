"""The events of a batch that cannot be sent as messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Rejected
from penstock.connectors.messages.shape import REFUSAL, ROW
from penstock.frames.hidden import EVENT
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rejected_in(df: DataFrame) -> Iterator[Rejected]:
    """The rejected events of a frame created by `message_of`."""
    from pyspark.sql import functions as f

    refused = df.filter(f.col(REFUSAL).isNotNull())
    for row in refused.select(REFUSAL, ROW, quote(EVENT)).toLocalIterator():
        yield rejected(row.asDict(recursive=True))


def rejected(row: Mapping[str, Any]) -> Rejected:
    """A rejected event, from its row with `refusal`, `row` and `$event`."""
    refusal = row[REFUSAL]
    return Rejected(row[ROW] or "{}", refusal["code"], refusal["message"], row[EVENT])
