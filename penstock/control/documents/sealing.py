"""Sealing of secret values, before any other processing of a document that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.control.documents.raw import name_of
from penstock.control.registry.store import Registry
from penstock.errors import PenstockError, Problem, Unavailable
from penstock.secrets import Keys
from penstock.settings import Settings
from penstock.specs.documents import derive_id


class Sealing:
    """Seals values with the key of the installation."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._keys, self._registry = Keys.of(settings), registry

    def sealed(self, raw: Any) -> Any:
        """The document with its secret value sealed. An unchanged value keeps its stored sealed text."""
        spec = raw.get("spec") if isinstance(raw, Mapping) and raw.get("kind") == "Secret" else None
        if not isinstance(spec, Mapping) or not isinstance(spec.get("value"), str) or not spec["value"]:
            return raw
        others = {name: field for name, field in spec.items() if name not in ("value", "sealed")}
        return {**raw, "spec": {**others, "sealed": self._text(derive_id(name_of(raw) or ""), spec["value"])}}

    def _text(self, secret: str, value: str) -> str:
        record = self._registry.find("Secret", secret)
        stored = record.document["spec"].get("sealed") if record is not None else None
        if isinstance(stored, str) and self._opens(secret, stored, value):
            return stored
        if not self._registry.shared:
            self._keys.make()
        try:
            return self._keys.seal(secret, value)
        except Unavailable as error:
            raise _no_key(error) if self._registry.shared else error from None

    def _opens(self, secret: str, sealed: str, value: str) -> bool:
        try:
            return self._keys.open(secret, sealed) == value
        except PenstockError:
            return False


def _no_key(error: Unavailable) -> Unavailable:
    message = f"several servers may share this registry, so none makes a key: {error.problems[0].message}"
    hint = "set secrets.key, or secrets.key_file, to the same key on all servers and workers"
    return Unavailable(Problem(code="no_secret_key", message=message, hint=hint))
