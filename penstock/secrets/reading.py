"""Reads the values of secrets, in the process that runs flows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.errors import Invalid, Problem
from penstock.redaction import hidden, hide
from penstock.secrets.keys import Keys
from penstock.secrets.vault import Vault
from penstock.settings import Settings
from penstock.specs.names import derive_id
from penstock.specs.secret import SecretSpec
from penstock.specs.variables import no_secrets

Lookup = Callable[[str, str], Mapping[str, Any] | None]
"""Returns the raw document of a kind and id."""


@dataclass(frozen=True)
class Secrets:
    """Reads secrets. Every value that was read is redacted in all texts from then on."""

    keys: Keys | None = None
    """None: this process must not read secrets."""
    directories: tuple[str, ...] = ()
    """Directories below which files of secrets are allowed."""
    vault: Vault | None = None

    @classmethod
    def of(cls, settings: Settings) -> Secrets:
        """The reader of secrets according to the settings."""
        chosen = settings.secrets
        roots = tuple(os.path.realpath(Path(path).expanduser()) for path in chosen.directories)
        return cls(Keys.of(settings), roots, Vault.of(settings))

    def read(self, name: str, lookup: Lookup, allows: Callable[[str], bool]) -> str:
        """The value of a secret; `allows` returns whether documents may use a variable."""
        secret = derive_id(name)
        raw = lookup("Secret", secret)
        if raw is None:
            return no_secrets(name)
        try:
            spec = SecretSpec.model_validate(raw.get("spec"))
        except ValidationError:
            raise Invalid(_unreadable(name, "is not valid", "validate its document")) from None
        value = self._value(secret, spec, allows)
        hide(value)
        return value

    def _value(self, secret: str, spec: SecretSpec, allows: Callable[[str], bool]) -> str:
        if spec.value is not None:
            return spec.value
        if self.keys is None:
            raise Invalid(_unreadable(secret, "can't be read by this process", "use it in a flow"))
        if spec.sealed is not None:
            return self.keys.open(secret, spec.sealed)
        if spec.environment is not None:
            return _variable(secret, spec.environment, allows)
        if spec.file is not None:
            return self._content(secret, spec.file)
        if self.vault is None or spec.vault is None:
            hint = "set secrets.vault_url where the worker runs"
            raise Invalid(_unreadable(secret, "is in Vault, and no Vault server is configured", hint))
        return self.vault.read(secret, spec.vault)

    def _content(self, secret: str, path: str) -> str:
        real = os.path.realpath(Path(path).expanduser())
        if not any(real.startswith(root.rstrip("/") + "/") for root in self.directories):
            what = f"is in a file that is not below secrets.directories: {path}"
            hint = "move the file, or ask an administrator to add its directory"
            raise Invalid(_unreadable(secret, what, hint))
        try:
            text = Path(real).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise Invalid(_unreadable(secret, f"is in a file that can't be read: {reason}", path)) from None
        return text.removesuffix("\n").removesuffix("\r")

    def __reduce__(self) -> tuple[Any, ...]:
        # Keys and tokens stay in this process. Other processes get the values to redact, which specs contain.
        return _elsewhere, hidden()


NO_SECRETS = Secrets()
"""For processes without flows: they see that a secret is used, but not its value."""


def _elsewhere(*values: str) -> Secrets:
    hide(*values)
    return NO_SECRETS


def _variable(secret: str, name: str, allows: Callable[[str], bool]) -> str:
    if not allows(name):
        hint = f"name it PENSTOCK_VAR_{name}, or ask an administrator to add {name} to policy.variables"
        raise Invalid(_unreadable(secret, f"is in the variable {name}, which documents may not use", hint))
    if (value := os.environ.get(name)) is None:
        what = f"is in the environment variable {name}, which is not set where the pipeline runs"
        raise Invalid(_unreadable(secret, what, f"export {name}"))
    return value


def _unreadable(secret: str, what: str, hint: str) -> Problem:
    return Problem(code="secret_unreadable", message=f"the secret '{secret}' {what}", hint=hint)
