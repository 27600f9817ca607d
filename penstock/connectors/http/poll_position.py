"""The position of a poll: the page, the cursor, the items already read there, and the validators."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.connectors.http.paging import Page

MOST_SEEN = 1000
"""Maximum number of items with the same cursor value that are recognized when they are sent again."""


@dataclass
class Position:
    """The position of a poll. Changes with each page; stored as text with the events of the page."""

    source: str
    """Identifies the URL and how it is read: a position of another source is ignored."""
    page: Page | None = None
    """The next page to read; None: a new poll starts."""
    taken: int = 0
    """Number of items of that page that were already read."""
    since: str | None = None
    """The cursor with which the poll started, as JSON."""
    cursor: str | None = None
    """The cursor of the last item, as JSON."""
    seen: list[str] = field(default_factory=list)
    """Digests of the items that have this cursor: a service may send them again."""
    etag: str | None = None
    modified: str | None = None
    """Validators of the last page of the last poll."""
    validated: str | None = None
    """The digest of the request that the validators belong to."""

    @classmethod
    def parse(cls, text: str | None, source: str) -> Position:
        """A stored position; a new position if there is none, or if it belongs to another source."""
        found = json.loads(text) if text is not None else {}
        if found.get("source") != source:
            return cls(source)
        page = found.pop("page")
        return cls(**found, page=None if page is None else Page(*page))

    def text(self) -> str:
        """The position as it is stored."""
        stored: dict[str, Any] = asdict(self) | {"page": None if self.page is None else self.page.stored()}
        return json.dumps(stored)

    def is_new(self, item: str, cursor: str | None) -> bool:
        """Whether an item was not read before; if so, it is recorded as the last item."""
        if cursor is None:
            return True
        digest = digest_of(item)
        if cursor != self.cursor:
            self.cursor, self.seen = cursor, []
        elif digest in self.seen:
            return False
        self.seen = [*self.seen, digest][-MOST_SEEN:]
        return True


def digest_of(*texts: str) -> str:
    """A short digest of texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
