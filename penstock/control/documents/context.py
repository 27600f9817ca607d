"""References of unsaved documents: to each other, and to documents in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from penstock.control.registry.documents import Documents
from penstock.engine.plan.analysis import offline
from penstock.engine.plan.flow import Lookup
from penstock.specs.validation import Known


def context_of(documents: Sequence[Any], registry: Documents, *, alone: bool) -> tuple[Lookup, Known]:
    """Lookup and ids among the given documents, and among the saved ones unless `alone`.

    The registry is queried once per kind and once per referenced document, regardless of the number of
    documents.
    """
    lookup, known = offline(documents)

    @cache
    def look_up(kind: str, name: str) -> Any:
        found = lookup(kind, name)
        if found is not None or alone:
            return found
        record = registry.find(kind, name)
        return record.document if record else None

    @cache
    def know(kind: str) -> set[str]:
        return known(kind) if alone else known(kind) | registry.ids(kind)

    return look_up, know
