"""Pagination of responses: finds the next page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, Self
from urllib.parse import urljoin

from pydantic import Field, model_validator

from penstock.connectors.http.exchange import Answer
from penstock.connectors.http.paths import JsonPath, plain, steps_of, text_at
from penstock.errors import Invalid, Problem
from penstock.frames.http.answers import shown
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with

LINK = re.compile(r"<([^>]*)>([^<]*)")
NEXT = re.compile(r';\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)', re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """A page, identified by its URL or by the value of a parameter; with neither, the first page."""

    url: str | None = None
    value: str | int | None = None

    def stored(self) -> list[Any]:
        """The page as stored in a position."""
        return [self.url, self.value]


class Paging(Spec):
    """The pagination of a service's responses."""

    type: Literal["link", "cursor", "page", "offset"] = Field(
        description="`link`: the `Link` header has the next page. `cursor`: the body has a cursor or URL of "
        "the next page. `page`: numbered pages. `offset`: pages by item offset."
    )
    path: JsonPath | None = Field(
        default=None,
        description="Path of the cursor in the body, such as `meta.next_cursor`.",
        json_schema_extra=only_with(type=["cursor"]),
    )
    param: str | None = Field(
        default=None,
        min_length=1,
        description="Parameter for the cursor, the page or the offset. Default: the name of the type.",
    )
    first: int = Field(
        default=1, ge=0, description="Number of the first page.", json_schema_extra=only_with(type=["page"])
    )
    size: int | None = Field(
        default=None,
        ge=1,
        description="Page size, sent as `size_param`. `page` and `offset`: a page with fewer items is the "
        "last one. Absent: an empty page is the last one.",
    )
    size_param: str = Field(default="limit", min_length=1, description="Parameter for `size`.")
    resume: bool = Field(
        default=False,
        description="Whether a poll continues at the page where the last poll ended, after the items "
        "already read: for append-only lists. Otherwise each poll starts with the first page.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.type == "cursor") != (self.path is not None):
            raise ValueError("type 'cursor' needs 'path', and other types can't have it")
        if self.type == "link" and self.param is not None:
            raise ValueError("'param' can't be used with type 'link'")
        if self.type != "page" and "first" in self.model_fields_set:
            raise ValueError("'first' can only be used with type 'page'")
        if self.type == "page" and self.resume and self.size is None:
            # A page that is not full, followed by an empty page, would never be read again.
            raise ValueError("'resume' with type 'page' needs the 'size' of a page")
        return self

    @property
    def begin(self) -> Page:
        """The first page."""
        return Page(value={"page": self.first, "offset": 0}.get(self.type))

    def params(self, page: Page) -> dict[str, str | int]:
        """The parameters that request a page."""
        found: dict[str, str | int] = {} if self.size is None else {self.size_param: self.size}
        if page.value is not None:
            found[self.param or self.type] = page.value
        return found

    def following(self, page: Page, url: str, answer: Answer, body: str, items: int) -> Page | None:
        """The page after `page`, which was read from `url`; None if it was the last page."""
        if self.type in ("page", "offset"):
            number = int(page.value or 0)
            last = items == 0 or (self.size is not None and items < self.size)
            return None if last else Page(value=number + (1 if self.type == "page" else items))
        if self.type == "link":
            target = _link(answer.headers.get("Link", ""))
        else:
            target = plain(text_at(body, steps_of(self.path or "")))
            if target and not target.startswith(("http://", "https://", "/")):
                following = Page(value=target) if target not in ("false", "0") else None
                return None if following == page else following
        if not target:
            return None
        following = Page(urljoin(url, target))
        if shown(following.url or "") != shown(url):
            # The credentials would be sent to that host.
            message = f"the next page is on another host, {shown(following.url or '')}"
            hint = "only pages of the same host are read: check 'paging' and the URL in the response"
            raise Invalid(Problem(code="http_foreign_page", message=message, path="paging", hint=hint))
        return None if following.url == url else following


def _link(header: str) -> str | None:
    """The target of the link with the relation `next`."""
    return next((url for url, params in LINK.findall(header) if NEXT.search(params)), None)
