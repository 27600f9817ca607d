"""The `redis` sink: events as entries of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from penstock.connectors.base import DeliveryId, Guarantee, SinkWriter
from penstock.connectors.messages.connected import ConnectedWriter, Connection, Refused
from penstock.connectors.messages.shape import Limits
from penstock.connectors.messages.sink import Message, MessageSink
from penstock.connectors.messages.template import columns_of, fixed_text
from penstock.connectors.probe import Probe
from penstock.connectors.redis.check import probe_redis
from penstock.connectors.redis.client import RedisEnd, failure_of, fields_of, wrong_type
from penstock.errors import Invalid, Retryable
from penstock.frames.site import Site
from penstock.specs.templates import Template

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER = "penstock:delivered:"
"""Begins the key with the number of the last batch that a sink has delivered."""


class RedisSink(RedisEnd, MessageSink):
    """Adds each event as an entry to a Redis stream (`XADD`).

    Delivery is exactly-once: a batch is added in one transaction, together with its number under a key of
    this sink (`penstock:delivered:…`), and a batch that is repeated is recognised by it. This holds as long
    as Redis keeps that key: with persistence switched off, a failover to a replica that lags behind, or an
    eviction policy `allkeys-…`, Redis may lose acknowledged events or the key.

    An entry has the fields `value`, and if the event has them `key` and `headers` (a JSON object). The value
    is the column `value`, if it is text or bytes; else it is the whole event as a JSON object. `_key` and
    `_headers` become the key and the headers; without them the event keeps those it came with. Entries have
    the order of the events. A Redis Cluster is not supported.
    """

    type: Literal["redis"] = "redis"
    key: Template = Field(
        min_length=1, description="Key of the stream; `{column}` is replaced by the value of that column."
    )
    max_length: int | None = Field(
        default=None,
        ge=1,
        description="Remove the oldest entries of a stream beyond about this number (`MAXLEN ~`).",
    )
    max_event_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024 - 1024,
        description="Larger events go to the dead letters.",
    )

    guarantee: ClassVar[Guarantee] = "exactly-once"
    tested: ClassVar = "Redis 7.0.15"
    example: ClassVar = """\
type: redis
address: redis.example:6379
key: orders:{country}
max_length: 1000000
security:
  login: {username: penstock, password: '${REDIS_PASSWORD}'}
"""

    @field_validator("key")
    @classmethod
    def _is_template(cls, value: str) -> str:
        columns_of(value)
        return value

    @property
    def template(self) -> str:
        return self.key

    @property
    def limits(self) -> Limits:
        return Limits(self.max_event_bytes, "key")

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        return probe_redis(self, fixed_text(self.key))

    def open(self, site: Site) -> SinkWriter:
        return _Writer(self)


class _Writer(ConnectedWriter["_Adder"]):
    def __init__(self, sink: RedisSink) -> None:
        super().__init__()
        self.sink = sink

    def connect(self) -> _Adder:
        return _Adder(self.sink)


class _Adder(Connection):
    """Adds batches over one connection."""

    def __init__(self, sink: RedisSink) -> None:
        self.sink = sink
        self.fixed = fixed_text(sink.key) is not None
        self.redis = sink.connect()

    def send(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        from redis import RedisError, WatchError

        try:
            return self._add(messages, delivery)
        except WatchError:  # also raised for a connection that was lost meanwhile
            raise Retryable(
                "the transaction was not executed: its connection or its marker changed"
            ) from None
        except RedisError as error:
            raise failure_of(error, self.sink) from None

    def _add(self, messages: Sequence[Message], delivery: DeliveryId) -> list[Refused]:
        marker = f"{MARKER}{delivery.pipeline}/{delivery.sink}/{delivery.lineage}"
        refused = self._refused(messages)
        bad = {number for number, _, _ in refused}
        with self.redis.pipeline(transaction=True) as batch:
            batch.watch(marker)  # type: ignore[no-untyped-call]
            last: Any = batch.get(marker)
            if last is not None and int(last) >= delivery.batch:
                return refused  # it was added before, and the acknowledgement was lost
            batch.multi()
            for number, message in enumerate(messages):
                if number not in bad:
                    fields: Any = fields_of(message.value, message.key, message.headers)
                    batch.xadd(message.target, fields, maxlen=self.sink.max_length, approximate=True)
            batch.set(marker, delivery.batch)
            answers = batch.execute(raise_on_error=False)
        # Redis carries out the other commands if one fails, here on a key that was another thing just now.
        sent = [number for number in range(len(messages)) if number not in bad]
        failed = [
            (n, "wrong_type", str(a)) for n, a in zip(sent, answers, strict=False) if isinstance(a, Exception)
        ]
        return refused + failed

    def _refused(self, messages: Sequence[Message]) -> list[Refused]:
        """Messages to keys that are no streams; `Invalid` if the sink has only this one key."""
        targets = sorted({message.target for message in messages})
        with self.redis.pipeline(transaction=False) as asked:
            for target in targets:
                asked.type(target)
            kinds = {target: kind.decode() for target, kind in zip(targets, asked.execute(), strict=True)}
        wrong = {t: wrong_type(t, k) for t, k in kinds.items() if k not in ("none", "stream")}
        if wrong and self.fixed:
            raise Invalid(*wrong.values())
        return [
            (number, wrong[message.target].code, wrong[message.target].message)
            for number, message in enumerate(messages)
            if message.target in wrong
        ]

    def cancel(self) -> None:
        self.redis.connection_pool.disconnect()

    def close(self) -> None:
        self.redis.close()
