"""The `http` sink: events as requests to an HTTP service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from penstock.connectors.base import DeliveryId, Guarantee, SinkWriter
from penstock.connectors.http.requests import Body, Refusal
from penstock.connectors.http.target import VALID, target_of
from penstock.connectors.messages.shape import Limits, message_of, misfits
from penstock.connectors.messages.sink import MessageSink
from penstock.connectors.probe import Probe
from penstock.errors import Problem, did_you_mean
from penstock.frames.hidden import visible
from penstock.frames.site import Site
from penstock.specs.base import Spec
from penstock.specs.http import Auth, HeaderName, Headers, Url
from penstock.specs.templates import FILLED, columns_of
from penstock.specs.tls import Tls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TYPES = {"event": "application/json", "array": "application/json", "lines": "application/x-ndjson"}
"""The content type of each kind of body."""

Done = dict[str, list[Refusal]]
"""Acknowledged requests of a batch by idempotency key, each with its rejected events."""


class Signature(Spec):
    """An HMAC-SHA256 of each request, with which the receiver verifies the sender."""

    secret: str = Field(
        min_length=1, description="Shared secret; use `${NAME}` to read it from an environment variable."
    )
    header: HeaderName = Field(default="X-Signature", description="Header for the signature.")
    format: Literal["stripe", "github"] = Field(
        default="stripe",
        description="`stripe`: `t=TIME,v1=HEX` over the time in seconds, a dot and the body, so that an old "
        "request can't be replayed. `github`: `sha256=HEX` over the body.",
    )


class HttpSink(MessageSink):
    """Sends events to an HTTP service, one per request or several as a JSON array or as JSON lines.

    Delivery is at-least-once: a batch that is retried after a crash is sent again with the same idempotency
    keys, so that a service can recognize requests that it has already processed. Requests are sent one after
    the other, or up to `concurrency` at once; the order of events with the same key is preserved.

    A 2xx status acknowledges a request. After 429, or 503 with `Retry-After`, the sink waits for as long as
    the service requests; after another 5xx, a lost connection or a timeout, it retries. An event that is
    rejected with another 4xx goes to the dead letters with the code `http_STATUS`; a request with several
    events is split until the rejected events are found. 401, 403, 404, 405 and 415 stop the flow; if the URL
    contains columns, 403 and 404 stop it only after 100 requests in a row.

    The body of an event is the column `value` if it is text or bytes; otherwise it is the whole event as a
    JSON object. The event's own key and headers are not sent: to send them, use columns in `headers`.
    """

    type: Literal["http"] = "http"
    url: Annotated[Url, FILLED] = Field(
        min_length=1,
        description="URL; `{column}` is replaced by the percent-encoded value of that column.",
    )
    method: Literal["POST", "PUT", "PATCH", "DELETE"] = Field(
        default="POST", description="HTTP method. A DELETE has no body."
    )
    body: Body = Field(
        default="event",
        description="Body of a request: one `event`, a JSON `array` of events, or JSON `lines`. Events in "
        "one request have the same URL and headers.",
    )
    max_events: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Maximum number of events per request. Default: 500; with `event` one.",
    )
    max_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=1,
        le=1024**3,
        description="Maximum size of a request body in bytes. Larger events go to the dead letters.",
    )
    headers: Annotated[Headers, FILLED] = Field(
        default_factory=dict,
        description="Headers of each request, with `{column}` for the value of a column. A header whose "
        "column is NULL is omitted.",
    )
    auth: Auth | None = Field(default=None, description="Authentication of requests.")
    signature: Signature | None = Field(default=None, description="Sign each request.")
    idempotency_key: HeaderName | None = Field(
        default="Idempotency-Key",
        description="Header with the idempotency key, which is the same when a request is repeated. `null`: "
        "none.",
    )
    tls: Tls | None = Field(
        default=None, description="TLS settings. Default: the certificates of the system."
    )
    timeout_ms: int = Field(default=10_000, ge=1, description="Timeout of a response.")
    concurrency: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Maximum number of concurrent requests. Requests with the same key are never concurrent.",
    )
    retry_statuses: list[int] = Field(
        default=[408, 425],
        description="Status codes from 400 to 499 that are retried, in addition to 429. A service with "
        "idempotency keys may respond with 409 while it still processes the first request.",
    )

    guarantee: ClassVar[Guarantee] = "at-least-once"
    tested: ClassVar = "HTTP/1.1"
    example: ClassVar = """\
type: http
url: https://api.example/v1/customers/{customer}/orders
headers: {X-Country: '{country}'}
auth: {bearer: '${API_TOKEN:-none}'}
"""

    _done: tuple[DeliveryId | None, Done] = PrivateAttr(default=(None, {}))

    @field_validator("url")
    @classmethod
    def _is_template(cls, value: str) -> str:
        list(columns_of(value))
        return value

    @field_validator("headers")
    @classmethod
    def _are_templates(cls, value: dict[str, str]) -> dict[str, str]:
        list(columns_of(value))
        return value

    @field_validator("retry_statuses")
    @classmethod
    def _are_refusals(cls, value: list[int]) -> list[int]:
        if any(not 400 <= status < 500 for status in value):
            raise ValueError("use status codes from 400 to 499; codes from 500 on are always retried")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.body == "event" and self.max_events not in (None, 1):
            raise ValueError("'max_events' can't be used with body 'event': choose 'array' or 'lines'")
        if self.method == "DELETE" and self.body != "event":
            raise ValueError("a DELETE has no body: only 'event' can be used with it")
        names = [name.lower() for name in self.headers]
        if self.auth is not None and "authorization" in names:
            raise ValueError("set either 'auth' or the header 'Authorization'")
        if len(set(names)) < len(names):
            raise ValueError("duplicate header")
        return self

    @property
    def template(self) -> str:
        return self.url

    @property
    def limits(self) -> Limits:
        return Limits(self.max_bytes, target="url", valid=VALID, secret=True)

    @property
    def by_event(self) -> dict[str, str]:
        """Headers that depend on the event."""
        return {name: text for name, text in self.headers.items() if list(columns_of(text))}

    def shape(self, df: DataFrame, site: Site) -> DataFrame:
        return message_of(df, self.url, self.limits, lambda url: target_of(url, self.by_event))

    def check(self, schema: StructType, site: Site) -> Iterator[Problem]:
        places = {"url": self.url, **{f"headers.{name}": text for name, text in self.headers.items()}}
        names = visible(schema.names)
        for path, template in places.items():
            for name in columns_of(template):
                if name not in names:
                    hint, message = did_you_mean(name, names), f"there is no column '{name}'"
                    yield Problem(code="unknown_column", message=message, path=path, hint=hint)
        for problem in misfits(schema, "".join(places.values()), "url"):
            if problem.code != "unknown_column":
                yield problem

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.http.check import probe_sink

        return probe_sink(self, site.policy)

    def open(self, site: Site) -> SinkWriter:
        from penstock.connectors.http.writer import HttpWriter

        return HttpWriter(self, site.policy)

    def done(self, delivery: DeliveryId) -> Done:
        """The requests of a batch that were acknowledged in this run.

        Stored here and not in a writer, which is replaced when it misses a deadline.
        """
        if self._done[0] != delivery:
            self._done = (delivery, {})
        return self._done[1]
