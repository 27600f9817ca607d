"""The `http_poll` source: items of an HTTP service, asked for again and again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.http.paging import Paging
from penstock.connectors.http.paths import JsonPath
from penstock.connectors.messages.source import MessageSource
from penstock.connectors.probe import Probe
from penstock.connectors.received import Receiver
from penstock.frames.site import Site
from penstock.specs.base import Spec
from penstock.specs.http import Auth, Headers, Url
from penstock.specs.tls import Tls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Cursor(Spec):
    """A field of the items by which the service can be asked for later ones."""

    field: JsonPath = Field(
        min_length=1,
        description="Field of an item, such as `id` or `updated_at`. Items must be sorted by it.",
    )
    param: str = Field(
        min_length=1,
        description="Query parameter that selects items after, or from, a value, such as `since`.",
    )
    start: str | int | None = Field(
        default=None, description="Value for the first poll. Absent: no parameter."
    )


class HttpPollSource(MessageSource):
    """Polls an HTTP service every `poll_ms`; each item of the JSON response is an event.

    With a `cursor`, or with `paging` that resumes, each item comes once, also after a crash: the position is
    stored with the events, and items that the service sends again are recognized. With neither, each poll
    gives all items of the answer, unless the service says by ETag or Last-Modified that nothing has changed.

    After 429, and 503 with `Retry-After`, it waits for as long as the service asks. After other 5xx, a lost
    connection or no answer it tries again; other statuses stop the flow. Redirects are not followed.
    """

    type: Literal["http_poll"] = "http_poll"
    url: Url = Field(min_length=1, description="URL to request.")
    method: Literal["GET", "POST"] = Field(
        default="GET",
        description="With POST, parameters of `cursor` and `paging` become members of the JSON body.",
    )
    params: dict[str, str] = Field(default_factory=dict, description="Query parameters.")
    headers: Headers = Field(default_factory=dict, description="Headers of each request.")
    body: dict[str, Any] = Field(default_factory=dict, description="`POST`: the body, a JSON object.")
    auth: Auth | None = Field(default=None, description="Authentication of requests.")
    tls: Tls | None = Field(
        default=None, description="TLS settings. Default: the certificates of the system."
    )
    poll_ms: int = Field(default=10_000, ge=1, description="Wait between the end of a poll and the next one.")
    items: JsonPath | None = Field(
        default=None,
        min_length=1,
        description="Path to the list of items, such as `data.items`. Absent: the response is the list, or "
        "one item.",
    )
    key: JsonPath | None = Field(
        default=None, min_length=1, description="Field of an item that becomes the key of its event."
    )
    cursor: Cursor | None = Field(default=None, description="Request only items after the last one.")
    paging: Paging | None = Field(default=None, description="Pagination. Absent: there is only one page.")
    once: bool = Field(default=False, description="Stop as `completed` after one poll.")
    timeout_ms: int = Field(default=10_000, ge=1, description="Timeout of a response.")
    max_body_bytes: int = Field(
        default=64 * 1024 * 1024, ge=1, description="Maximum size of a response; a larger one fails the flow."
    )

    guarantee: ClassVar = "at-least-once"
    tested: ClassVar = "HTTP/1.1"
    example: ClassVar = """\
type: http_poll
url: https://api.example/v1/orders
auth: {bearer: '${API_TOKEN:-none}'}
items: data.orders
cursor: {field: id, param: after}
paging: {type: link}
poll_ms: 30000
schema: id BIGINT, customer STRING, amount DOUBLE
"""

    @model_validator(mode="after")
    def _asks_well(self) -> Self:
        if self.method == "GET" and self.body:
            raise ValueError("a GET has no body: use POST")
        if self.auth is not None and "authorization" in (name.lower() for name in self.headers):
            raise ValueError("set either 'auth' or the header 'Authorization'")
        if self.paging is not None and self.paging.resume and self.cursor is not None:
            raise ValueError("set either 'cursor' or paging with 'resume': both set the start of a poll")
        return self

    @property
    def identity(self) -> str:
        """Tells a position of this address from that of another one."""
        from penstock.connectors.http.poll_position import digest_of

        cursor = None if self.cursor is None else [self.cursor.field, self.cursor.param]
        paging = None if self.paging is None else [self.paging.type, self.paging.resume]
        return digest_of(json.dumps([self.url.partition("?")[0], self.items, cursor, paging]))

    def receiver(self, site: Site) -> Receiver:
        from penstock.connectors.http.poller import Poller

        return Poller(self, site.policy)

    def probe(self, spark: SparkSession, site: Site) -> Probe:
        from penstock.connectors.http.check import probe_poll

        return probe_poll(self, site.policy)
