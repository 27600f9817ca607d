"""The spec of a Secret: the origin of its value."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from penstock.specs.base import Spec

ORIGINS = ("value", "sealed", "environment", "file", "vault")


def _below(path: str) -> str:
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError("'.' and '..' lead out of the engine")
    return path


class VaultField(Spec):
    """A field of a secret in HashiCorp Vault or OpenBao."""

    mount: Annotated[str, StringConstraints(pattern=r"^[\w.-]+(/[\w.-]+)*$"), AfterValidator(_below)] = Field(
        default="secret", description="Path of the key-value engine."
    )
    path: Annotated[str, StringConstraints(pattern=r"^[^/?#\s]+(/[^/?#\s]+)*$"), AfterValidator(_below)] = (
        Field(description="Path of the secret in the engine, such as `billing/database`.")
    )
    field: str = Field(default="value", min_length=1, description="Field of that secret.")
    kv: Literal[1, 2] = Field(default=2, description="Version of the key-value engine.")


class SecretSpec(Spec):
    """A value that documents use as `${secret:NAME}`. Exactly one field is set: the origin of the value."""

    value: str | None = Field(
        default=None,
        min_length=1,
        description="The value itself. It is encrypted when the document is saved, and never shown again.",
        json_schema_extra={"writeOnly": True},
    )
    sealed: str | None = Field(
        default=None,
        min_length=1,
        description="The encrypted value, as Penstock has stored it. Only an installation with the same key "
        "can read it.",
    )
    environment: str | None = Field(
        default=None,
        min_length=1,
        description="Environment variable of the worker: one that documents may use, see `policy.variables`.",
    )
    file: str | None = Field(
        default=None,
        min_length=1,
        description="File on the worker, below one of the directories in `secrets.directories`. A line break "
        "at its end is ignored.",
    )
    vault: VaultField | None = Field(
        default=None, description="Field of a secret in the Vault server of `secrets.vault_url`."
    )

    @model_validator(mode="after")
    def _one_origin(self) -> SecretSpec:
        found = [name for name in ORIGINS if getattr(self, name) is not None]
        if len(found) != 1:
            raise ValueError(f"exactly one of {', '.join(ORIGINS)} is needed, not {len(found)}")
        return self
