"""The `http` step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import quote

import pydantic_core
from cachetools import LRUCache
from pydantic import Field, PrivateAttr

from penstock.errors import Invalid, Problem, Retryable
from penstock.frames.columns import (
    as_one,
    as_struct,
    declared,
    found,
    index_of,
    joined,
    put_together,
    shown,
    without_rows,
)
from penstock.processors.base import BadEvent, BatchProcessor, Desk, Outcome, Stage, Work
from penstock.processors.support.http_client import (
    Answer,
    Cache,
    Call,
    Request,
    Retry,
    Service,
    given_answers,
)
from penstock.processors.support.rates import bucket, bucket_file
from penstock.specs.http import Auth
from penstock.specs.reach import ServerUrl
from penstock.specs.templates import FILLED, Event, checked, filled, filled_json
from penstock.specs.tls import Tls

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.processors.formats.text import Decode

WITH_BODY = ("POST", "PUT", "PATCH")

_SERVICES: LRUCache[tuple[str, str, str], Service] = LRUCache(64)
"""One client per process and step, so that connections and responses are reused across tasks."""


class HttpProcessor(BatchProcessor):
    """Enriches each event with the response of an HTTP service.

    `{column}` in the URL is replaced by the value of the event, escaped. The body of a POST, PUT or PATCH is
    the event as JSON, or `body`: text or a JSON value with `{column}` in it. The response becomes one new
    column: a struct of the `schema`, read from JSON, or the text if there is no schema.

    A failed call is retried, as configured in `retry`. If there is still no response, or it doesn't match the
    schema, `on_error` decides: `dead_letter`, `null` (the event continues without a response), `drop`
    (counted), or `fail` (the pipeline restarts under its restart policy, and no events pass while the service
    is down). With `cache` the same call is made once within the cache time, in each Python process of Spark.
    An event may be sent again after a crash: the service should tolerate that.

    In a test run nothing is called: the responses are given, as a list in the order of calls or as a map by
    URL. A response is the body, or `{status, body}`.
    """

    network: ClassVar[bool] = True
    example: ClassVar[str] = """\
type: http
url: https://users.example/v1/users/{user_id}
headers: {Authorization: "Bearer ${USERS_TOKEN:-none}"}
into: user
schema: name STRING, tier INT
cache: {ttl_ms: 600000}
rate: 50
"""

    type: Literal["http"] = "http"
    url: Annotated[ServerUrl, FILLED] = Field(
        min_length=1, description="URL to call; `{column}` is replaced by the value of that column."
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        default="GET", description="HTTP method."
    )
    headers: dict[str, str] = Field(default_factory=dict, description="Headers of each call.")
    auth: Auth | None = Field(default=None, description="Authentication of calls.")
    tls: Tls | None = Field(
        default=None, description="TLS settings. Default: the certificates of the system."
    )
    body: Annotated[str | dict[str, Any] | None, FILLED] = Field(
        default=None, description="Request body: text or a JSON value. Default: the event as JSON."
    )
    into: str = Field(default="response", min_length=1, description="Name of the column for the response.")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Fields of the response as Spark DDL. Default: the response text.",
    )
    retry: Retry = Field(default_factory=Retry, description="Retries of failed calls.")
    cache: Cache | None = Field(default=None, description="Cache of responses. Default: one call per event.")
    rate: float | None = Field(
        default=None, gt=0, description="Maximum calls per second, for the flow on this machine."
    )
    timeout_ms: int = Field(default=10_000, ge=1, description="Timeout of a response.")
    concurrency: int = Field(
        default=4, ge=1, le=256, description="Maximum number of concurrent calls per batch."
    )
    on_error: Literal["dead_letter", "null", "drop", "fail"] = Field(
        default="dead_letter", description="What happens to an event without a response."
    )

    _file: Path | None = PrivateAttr(default=None)

    def output(self, schema: StructType, stage: Stage) -> StructType:
        """The columns of the event and the response."""
        from pyspark.sql.types import StringType

        self._file = bucket_file(stage.site.state, stage.step)
        for name in checked(self.url, "url"):
            found(schema, name, "url")
        for name in checked(self.body, "body"):
            found(schema, name, "body")
        if self.body is not None and self.method not in WITH_BODY:
            message = f"a {self.method} has no body"
            raise Invalid(Problem(code="exclusive_fields", message=message, path="body", hint="use POST"))
        if not self.url.startswith(("http://", "https://")):
            message = "the URL must begin with http:// or https://"
            raise Invalid(Problem(code="invalid_value", message=message, path="url"))
        kind = as_struct(declared(self.schema_)) if self.schema_ is not None else StringType()
        return joined(schema.fields, type(schema)().add(self.into, kind), "into", "choose another name")

    def open(self, desk: Desk) -> Work:
        """The function that makes the calls for a batch, several at a time."""
        from penstock.processors.formats.text import json_decoder

        call = given_answers(desk.given) if desk.testing else self._service(desk).call
        at_once = 1 if desk.testing else self.concurrency  # responses are given in order
        read = json_decoder(declared(self.schema_)) if self.schema_ is not None else None

        def work(batch: pa.RecordBatch) -> Outcome:
            answers = self._answers(call, self._requests(batch), at_once)
            bad = {i: BadEvent(i, a.code, a.problem) for i, a in enumerate(answers) if a.problem is not None}
            made, misfits = self._column(answers, read)
            bad |= misfits
            if not bad:
                return Outcome(put_together(batch, shown(batch), made))
            if self.on_error == "fail":
                raise Retryable(next(iter(bad.values())).message)
            if self.on_error != "null":
                batch, made = without_rows(batch, bad), without_rows(made, bad)
            together = put_together(batch, shown(batch), made)
            if self.on_error == "dead_letter":
                return Outcome(together, list(bad.values()))
            return Outcome(
                together, logs=[f"{len(bad)} without an answer: {next(iter(bad.values())).message}"]
            )

        return work

    def _service(self, desk: Desk) -> Service:
        from penstock.frames.http.clients import client_of

        key = (desk.flow, desk.step, self.model_dump_json())
        if key not in _SERVICES:
            client = client_of(desk.policy, self.auth, self.tls, self.timeout_ms / 1000, self.concurrency)
            limit = bucket(self._file, self.rate, 1) if self.rate is not None else None
            _SERVICES[key] = Service(client, self.headers, self.retry, limit, self.cache)
        return _SERVICES[key]

    def _requests(self, batch: pa.RecordBatch) -> list[Request]:
        from penstock.streams.rendering import plain_values

        names, whole = batch.schema.names, shown(batch)
        used = dict.fromkeys([*checked(self.url, "url"), *checked(self.body, "body")])
        values = [plain_values(batch.column(index_of(names, name))) for name in used]
        sent = [plain_values(batch.column(name)) for name in whole] if self._sends_event else []
        return [
            self._request(
                {name: column[i] for name, column in zip(used, values, strict=True)},
                {name: column[i] for name, column in zip(whole, sent, strict=False)},
            )
            for i in range(batch.num_rows)
        ]

    @property
    def _sends_event(self) -> bool:
        return self.body is None and self.method in WITH_BODY

    def _request(self, values: Event, whole: Event) -> Request:
        url = filled(self.url, values, lambda value: quote(value, safe=""))
        body = None
        if isinstance(self.body, str):
            body = filled(self.body, values).encode()
        elif self.method in WITH_BODY:
            body = pydantic_core.to_json(whole if self.body is None else filled_json(self.body, values))
        return Request(self.method, url, body)

    def _answers(self, call: Call, requests: list[Request], at_once: int) -> list[Answer]:
        # With a cache, identical requests of a batch are sent once.
        once = list(dict.fromkeys(requests)) if self.cache is not None else requests
        if at_once == 1 or len(once) < 2:
            made = [call(request) for request in once]
        else:
            with ThreadPoolExecutor(min(at_once, len(once))) as pool:
                made = list(pool.map(call, once))
        if self.cache is None:
            return made
        known = dict(zip(once, made, strict=True))
        return [known[request] for request in requests]

    def _column(
        self, answers: list[Answer], read: Decode | None
    ) -> tuple[pa.RecordBatch, dict[int, BadEvent]]:
        """The responses as a column, with nulls for those that do not match the schema."""
        import pyarrow as pa

        rows = [i for i, answer in enumerate(answers) if answer.problem is None]
        misfits: dict[int, BadEvent] = {}
        if read is None:
            column = pa.array([answers[i].body.decode(errors="replace") for i in rows], pa.string())
        else:
            decoded = read([answers[i].body for i in rows])
            for misfit in decoded.misfits:
                row = rows[misfit.line - 1]
                misfits[row] = BadEvent(row, f"answer_{misfit.code}", f"the response: {misfit.reason}")
            column = as_one(decoded.batch, self.into).column(0)
        place = {row: n for n, row in enumerate(row for row in rows if row not in misfits)}
        column = column.take(pa.array([place.get(i) for i in range(len(answers))], pa.int64()))
        return pa.RecordBatch.from_arrays([column], names=[self.into]), misfits
