"""The receiver of the `http_poll` source: polls a URL page by page."""

from __future__ import annotations

import json
import threading
import time
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from penstock.connectors.http.exchange import Answer, exchange
from penstock.connectors.http.paging import Page
from penstock.connectors.http.paths import elements, plain, steps_of, text_at
from penstock.connectors.http.poll_position import Position, digest_of
from penstock.connectors.http.statuses import judge
from penstock.connectors.messages.source import raw_events
from penstock.connectors.received import Ended, Received, Receiver
from penstock.errors import Backpressure, Invalid, Problem, Unavailable
from penstock.frames.http.answers import shown
from penstock.frames.http.clients import client_of
from penstock.policy import Policy

if TYPE_CHECKING:
    from penstock.connectors.http.poll import HttpPollSource


class Asking(NamedTuple):
    """A request for a page."""

    url: str
    body: bytes | None

    @property
    def digest(self) -> str:
        """A digest that identifies the request."""
        return digest_of(self.url, (self.body or b"").decode())


class Poller(Receiver):
    """Reads all pages of a poll, waits for `poll_ms`, and starts the next poll."""

    def __init__(self, source: HttpPollSource, policy: Policy) -> None:
        self.source, self.policy = source, policy
        self.position = Position(source.identity)
        self._items = steps_of(source.items or "")
        self._key = None if source.key is None else steps_of(source.key)
        self._cursor = None if source.cursor is None else steps_of(source.cursor.field)
        self._client: httpx.Client | None = None
        self._stopped = threading.Event()
        self._due = 0.0
        self._ended = False
        self._ready: Received | None = None

    def open(self, position: str | None) -> None:
        self.position = Position.parse(position, self.source.identity)
        try:
            self._ready = self._page()  # a source that can't work fails now
        except Invalid:
            if self.position.page is None or self._resumes:
                raise
            # The rest of an interrupted poll: the service may no longer have its page.
            self.position.page = None
            self._ready = self._page()

    def receive(self, wait_s: float) -> Received | None:
        if self._ready is not None:
            ready, self._ready = self._ready, None
            return ready
        if self._ended:
            raise Ended
        wait = self._due - time.monotonic()
        if wait > 0:
            self._stopped.wait(min(wait, wait_s))
            return None
        return self._page()

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def sample(self) -> list[str]:
        """The items of the first page, for a connection test."""
        page = self._first()
        return self._items_of(self._text_of(self._answer(self._asking(page), {})))

    def _page(self) -> Received | None:
        """The new events of the next page; None if it has none."""
        position = copy(self.position)
        page = position.page
        if page is None:
            page, position.since = self._first(), position.cursor
        asking = self._asking(page, position.since)
        try:
            answer = self._answer(asking, self._validators(asking))
        except Backpressure as error:
            self._due = time.monotonic() + error.retry_after
            return None
        if answer.status == 304:
            self._finish(position, page, 0)
            return None
        body = self._text_of(answer)
        items = self._items_of(body)
        fresh = items[position.taken :] if self._resumes else items
        new = [item for item in fresh if position.is_new(item, self._cursor_of(item))]
        paging = self.source.paging
        following = paging.following(page, asking.url, answer, body, len(items)) if paging else None
        if following is not None:
            position.page, position.taken = following, 0
            self.position = position
        else:
            headers = answer.headers
            position.etag, position.modified = headers.get("ETag"), headers.get("Last-Modified")
            position.validated = asking.digest
            self._finish(position, page, len(items))
        if not new:
            return None
        keys = None if self._key is None else [_key_of(item, self._key) for item in new]
        return Received(raw_events([item.encode() for item in new], keys), position.text())

    def _finish(self, position: Position, page: Page, items: int) -> None:
        """End a poll with a page of `items` items."""
        if self._resumes:
            position.page, position.taken = page, max(items, position.taken)
        else:
            position.page, position.taken = None, 0
        self.position = position
        self._ended = self.source.once
        self._due = time.monotonic() + self.source.poll_ms / 1000

    @property
    def _resumes(self) -> bool:
        return self.source.paging is not None and self.source.paging.resume

    def _first(self) -> Page:
        return Page() if self.source.paging is None else self.source.paging.begin

    def _asking(self, page: Page, since: str | None = None) -> Asking:
        source = self.source
        if page.url is not None:
            return Asking(page.url, self._body({}))
        added: dict[str, Any] = source.paging.params(page) if source.paging is not None else {}
        if (cursor := source.cursor) is not None:
            begin = json.dumps(cursor.start) if since is None else since
            value = json.loads(begin) if source.method == "POST" else plain(begin)
            added |= {} if value is None else {cursor.param: value}
        params = source.params if source.method == "POST" else source.params | added
        url = str(httpx.URL(source.url).copy_merge_params(params)) if params else source.url
        return Asking(url, self._body(added))

    def _body(self, added: dict[str, Any]) -> bytes | None:
        return json.dumps(self.source.body | added).encode() if self.source.method == "POST" else None

    def _validators(self, asking: Asking) -> dict[str, str]:
        """Headers with which the service can respond that nothing has changed."""
        if self.position.validated != asking.digest:
            return {}
        named = {"If-None-Match": self.position.etag, "If-Modified-Since": self.position.modified}
        return {name: value for name, value in named.items() if value is not None}

    def _answer(self, asking: Asking, headers: dict[str, str]) -> Answer:
        source = self.source
        if self._client is None:
            self._client = client_of(self.policy, source.auth, source.tls, source.timeout_ms / 1000, 1)
        sent = {"Accept": "application/json", **source.headers, **headers}
        if asking.body is not None:
            sent.setdefault("Content-Type", "application/json")
        answer = exchange(
            self._client, source.method, asking.url, sent, asking.body, source.timeout_ms / 1000,
            source.max_body_bytes,
        )  # fmt: skip
        where = shown(asking.url)
        judge(answer, where)
        if answer.status >= 400:
            message = f"{where} responded with {answer.status}: {answer.text or 'no reason'}"
            hint = "check the URL and the parameters"
            raise Invalid(Problem(code="http_refused", message=message, path="url", hint=hint))
        if not answer.whole:
            message = f"{where} responded with more than {source.max_body_bytes} bytes"
            hint = "request smaller pages, or raise max_body_bytes"
            raise Invalid(Problem(code="too_large", message=message, path="max_body_bytes", hint=hint))
        return answer

    def _text_of(self, answer: Answer) -> str:
        """The body of a response, which must be JSON or empty."""
        try:
            text = answer.body.decode("utf-8-sig")
            json.loads(text or "null")
        except ValueError:
            message = f"{shown(self.source.url)} did not respond with JSON: {answer.text[:100]!r}"
            hint = "check that the URL is an API endpoint, not a web page"
            raise Unavailable(Problem(code="not_json", message=message, path="url", hint=hint)) from None
        return text or "null"

    def _items_of(self, body: str) -> list[str]:
        if body == "null":
            return []
        found = text_at(body, self._items)
        if found is None:
            message = f"the response of {shown(self.source.url)} has no '{self.source.items}'"
            hint = "set the path to the list of items, such as data.items"
            raise Unavailable(Problem(code="no_items", message=message, path="items", hint=hint))
        return elements(found)

    def _cursor_of(self, item: str) -> str | None:
        found = None if self._cursor is None else text_at(item, self._cursor)
        return found if found != "null" else None


def _key_of(item: str, steps: tuple[str | int, ...]) -> bytes | None:
    found = plain(text_at(item, steps))
    return None if found is None else found.encode(errors="replace")
