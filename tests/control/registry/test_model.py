"""The registry behaves as a dictionary of documents with lists of revisions would."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.control.registry import Registry
from penstock.errors import PenstockError
from penstock.specs.references import references_of
from tests.control.registry.kit import pipeline, stream

Key = tuple[str, str]

contents = st.one_of(
    st.builds(lambda name, n: stream(name, {"n": n}), st.sampled_from(["A", "b", "c d"]), st.integers(0, 2)),
    st.builds(
        lambda name, reads, writes: pipeline(name, reads, writes),
        st.sampled_from(["p", "q"]),
        st.sampled_from(["a", "b", "c_d"]),
        st.sampled_from(["", "a", "b"]),
    ),
)
keys = st.sampled_from(
    [("Stream", "a"), ("Stream", "b"), ("Stream", "c_d"), ("Pipeline", "p"), ("Pipeline", "q")]
)


def key_of(document: dict[str, Any]) -> Key:
    return document["kind"], document["metadata"]["name"].lower().replace(" ", "_")


class RegistryModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model: dict[Key, list[dict[str, Any]]] = {}
        self.directory = tempfile.mkdtemp()

    @initialize()
    def open(self) -> None:
        self.registry = Registry.open(f"sqlite:///{self.directory}/registry.db")

    def teardown(self) -> None:
        self.registry.close()
        shutil.rmtree(self.directory)

    def expect(self, code: str | None, action: Any) -> None:
        """Runs an action that ought to be refused with `code`, or to succeed if that is None."""
        told = None
        try:
            action()
        except PenstockError as error:
            told = error.problems[0].code
        assert told == code

    def dangling(self, document: dict[str, Any], known: Any) -> str | None:
        found = all((ref.kind, ref.id) in known for ref in references_of(document))
        return None if found else "unknown_reference"

    def save(self, document: dict[str, Any]) -> None:
        history = self.model.setdefault(key_of(document), [])
        if not history or history[-1] != document:
            history.append(document)

    @rule(document=contents)
    def create(self, document: dict[str, Any]) -> None:
        taken = "name_in_use" if key_of(document) in self.model else None
        refused = taken or self.dangling(document, self.model)
        self.expect(refused, lambda: self.registry.create(document))
        if not refused:
            self.save(document)

    @rule(document=contents, stale=st.booleans())
    def update(self, document: dict[str, Any], stale: bool) -> None:
        kind, id = key_of(document)
        revision = len(self.model.get((kind, id), [])) - stale
        refused = "not_found" if (kind, id) not in self.model else "stale_revision" if stale else None
        refused = refused or self.dangling(document, self.model)
        self.expect(refused, lambda: self.registry.update(kind, id, document, expected=str(revision)))
        if not refused:
            self.save(document)

    @rule(key=keys)
    def delete(self, key: Key) -> None:
        wanted = {(ref.kind, ref.id) for history in self.model.values() for ref in references_of(history[-1])}
        refused = "not_found" if key not in self.model else "referenced" if key in wanted else None
        self.expect(refused, lambda: self.registry.delete(*key))
        if not refused:
            del self.model[key]

    @rule(key=keys, number=st.integers(1, 4))
    def rollback(self, key: Key, number: int) -> None:
        history = self.model.get(key, [])
        refused = "not_found" if number > len(history) else self.dangling(history[number - 1], self.model)
        self.expect(refused, lambda: self.registry.rollback(*key, number))
        if not refused:
            self.save(history[number - 1])

    @rule(documents=st.lists(contents, max_size=4, unique_by=key_of), replace=st.booleans())
    def bundle(self, documents: list[dict[str, Any]], replace: bool) -> None:
        known = {key_of(document) for document in documents} | (set() if replace else set(self.model))
        refused = next(filter(None, (self.dangling(document, known) for document in documents)), None)
        self.expect(refused, lambda: self.registry.apply_import(documents, "replace" if replace else "merge"))
        if not refused:
            self.model = {key: history for key, history in self.model.items() if key in known}
            for document in documents:
                self.save(document)

    @invariant()
    def agree(self) -> None:
        exported = self.registry.export()["documents"]
        assert len(exported) == len(self.model)
        for key, history in self.model.items():
            record = self.registry.get(*key)
            assert (record.document, record.revision) == (history[-1], len(history))
            assert [each.document for each in self.registry.revisions(*key)] == history[::-1]
            assert {**record.document, **({"status": record.flow.desired} if record.flow else {})} in exported


TestRegistryModel = RegistryModel.TestCase
TestRegistryModel.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
