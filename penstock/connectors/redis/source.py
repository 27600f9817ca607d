"""The `redis` source: entries of a stream of Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from penstock.connectors.base import SourceGuarantee
from penstock.connectors.messages.source import MessageSource
from penstock.connectors.probe import Probe
from penstock.connectors.received import Receiver
from penstock.connectors.redis.check import probe_redis
from penstock.connectors.redis.client import RedisEnd
from penstock.connectors.redis.entries import parse_start
from penstock.connectors.redis.receiver import RedisReceiver
from penstock.frames.site import Site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _is_start(text: str) -> str:
    parse_start(text)
    return text


class RedisSource(RedisEnd, MessageSource):
    """Reads the entries of a Redis stream (`XREAD`).

    Each entry is kept exactly once: the id of the last entry is stored with the events, and reading goes on
    behind it after a crash. There is no consumer group, so nothing is written to Redis.

    The field `value` of an entry is its value; `key` is the key of the event, and `headers`, a JSON object,
    its headers. Of an entry without a field `value`, the value is a JSON object of all its fields as text.
    With `format: json` the columns are those of `schema`, decoded by the same rule as all other events: an
    entry that does not fit goes to the dead letters with the column and the value. `text` and `bytes` give
    `value`, `key` and `headers`.
    """

    type: Literal["redis"] = "redis"
    key: str = Field(
        min_length=1,
        description="Key of the stream. If it does not exist, the source waits for its first entry.",
    )
    position: Annotated[str, AfterValidator(_is_start)] = Field(
        default="earliest",
        description="Start position: earliest, latest, id:ID (with this entry) or time:ISO 8601.",
    )
    gap: Literal["skip", "fail"] = Field(
        default="fail",
        description="Handling of entries that were trimmed or deleted before they were read: fail the "
        "pipeline, or continue with the oldest one available. Redis before version 7 doesn't report this.",
    )
    prefetch: int = Field(
        default=1000,
        ge=1,
        le=10_000,
        description="Number of entries fetched at a time and stored in one write.",
    )

    guarantee: ClassVar[SourceGuarantee] = "exactly-once"
    tested: ClassVar = "Redis 7.0.15"
    example: ClassVar = """\
type: redis
address: redis.example:6379
key: orders
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    def receiver(self, site: Site) -> Receiver:
        return RedisReceiver(self)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_redis(self, self.key, must_exist=True)
