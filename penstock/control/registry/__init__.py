"""The registry of documents: revisions, references, bundles, and the runtime state of flows.

Uses neither Spark nor HTTP. `Registry` is the entry point; `tables` is for modules that store runtime state.
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
