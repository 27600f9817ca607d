"""The registry of documents: revisions, references, bundles, and the runtime state of flows.

Knows no Spark and no HTTP. `Registry` is the way in; `tables` is for those who keep runtime state.
"""

from penstock.control.registry.records import (
    Change,
    Diff,
    DiffEntry,
    Event,
    FlowState,
    Page,
    Record,
    Referrer,
    Revision,
)
from penstock.control.registry.store import Registry

__all__ = [
    "Change",
    "Diff",
    "DiffEntry",
    "Event",
    "FlowState",
    "Page",
    "Record",
    "Referrer",
    "Registry",
    "Revision",
]
