"""Settings for access to an installation, and for the resources that its documents may access."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from penstock.settings.section import Section, lowered, split_paths, split_words


class TlsSettings(Section):
    """Encryption of the server."""

    certificate: Path | None = Field(
        default=None,
        description="PEM file with the certificate of the server. Unset: the server uses plain HTTP.",
    )
    key: Path | None = Field(
        default=None,
        description="PEM file with the private key of `certificate`. Unset: the key is in that file too.",
    )


class OidcSettings(Section):
    """Log-in with an OpenID Connect provider."""

    issuer: str | None = Field(
        default=None,
        min_length=1,
        description="URL of the provider, below which `/.well-known/openid-configuration` is. Unset: users"
        " log in with passwords only.",
    )
    client_id: str | None = Field(
        default=None, min_length=1, description="Id under which the provider knows this installation."
    )
    client_secret: str | None = Field(
        default=None,
        description="Secret of the client; best set by its variable. Unset: a public client, with PKCE only.",
    )
    label: str = Field(default="Single sign-on", min_length=1, description="Text on the log-in button.")
    role_claim: str | None = Field(
        default=None,
        min_length=1,
        description="Claim of the ID token with the groups or roles of a user, such as `groups`; a dot leads"
        " into an object. Unset: every new user gets `default_role`, and an admin can change it.",
    )
    roles: dict[str, Literal["viewer", "operator", "editor", "admin"]] = Field(
        default_factory=dict,
        description="The role for each value of `role_claim`; of several, the one that includes most.",
    )
    default_role: Literal["viewer", "operator", "editor", "admin"] | None = Field(
        default=None,
        description="Role of users for whom `role_claim` says none. Unset: they cannot log in.",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.issuer is not None and self.client_id is None:
            raise ValueError("issuer needs a client_id")
        if self.roles and self.role_claim is None:
            raise ValueError("roles needs a role_claim")
        return self


class AuthSettings(Section):
    """Authentication of users of the server."""

    mode: Annotated[Literal["auto", "on"], BeforeValidator(lowered)] = Field(
        default="auto",
        description="`auto`: people have to log in as soon as there is a user or `auth.oidc.issuer` is set;"
        " until then the server is for this machine alone. `on`: always; without a user, `penstock up` prints"
        " a link for the first one.",
    )
    hosts: Annotated[list[str], BeforeValidator(split_words)] = Field(
        default_factory=list,
        description="Names, or names with a port, under which browsers and programs reach the server, besides"
        " `host` and those of this machine. In the variable, separated by commas.",
    )
    proxies: Annotated[list[str], BeforeValidator(split_words)] = Field(
        default_factory=list,
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto`"
        " are believed. In the variable, separated by commas.",
    )
    session_hours: float = Field(
        default=12, gt=0, description="Hours after which a session ends, however much it is used."
    )
    idle_minutes: float = Field(
        default=120, ge=2, description="Minutes without a request after which a session ends."
    )
    oidc: OidcSettings = Field(default_factory=OidcSettings)


class AuditSettings(Section):
    """The audit trail."""

    retention_days: int = Field(
        default=365, ge=1, description="Days for which entries of the audit trail are kept."
    )


SAFE_FORMATS = (
    "rate", "rate-micro-batch", "noop", "parquet", "orc", "json", "csv", "text", "avro", "delta", "iceberg",
)  # fmt: skip
"""Data sources of Spark that access nothing but the paths in their options."""


class PolicySettings(Section):
    """The resources that documents may access from the server and its workers."""

    paths: Annotated[list[str], BeforeValidator(split_paths)] = Field(
        default_factory=list,
        description="Directories below which documents may name files, wherever links lead. Penstock's own"
        " files in `home` are never among them. In the variable, separated by `:`. Empty: `home`, the"
        " directory in which the process was started, and `storage.shared`.",
    )
    addresses: Annotated[list[str], BeforeValidator(split_words)] = Field(
        default_factory=list,
        description="Addresses that documents may connect to although they are link-local or private:"
        " networks such as `10.0.0.0/8`, names such as `db.internal` or `*.internal`. In the variable,"
        " separated by commas.",
    )
    private_addresses: Annotated[Literal["auto", "allow", "refuse"], BeforeValidator(lowered)] = Field(
        default="auto",
        description="Whether documents may connect to loopback and private addresses. `auto`: if `host` is a"
        " loopback address, and neither `auth.mode` is `on` nor `auth.oidc.issuer` or `auth.proxies` is set."
        " Link-local addresses, where clouds have their metadata, need an entry in `addresses`.",
    )
    spark_formats: Annotated[list[str], BeforeValidator(split_words)] = Field(
        default=list(SAFE_FORMATS),
        description="Data sources that the `spark` connector may use. In the variable, separated by commas.",
    )
    variables: Annotated[list[str], BeforeValidator(split_words)] = Field(
        default_factory=list,
        description="Environment variables that documents may use as `${NAME}`, beside `PENSTOCK_HOME` and"
        " those that begin with `PENSTOCK_VAR_`. In the variable, separated by commas.",
    )


class SecretSettings(Section):
    """The origins of secret values, and the key that encrypts values in the registry."""

    key: str | None = Field(
        default=None,
        min_length=1,
        description="Keys for secrets in the registry: 32 bytes in Base64 each, separated by commas; the"
        " first one encrypts. Best set by its variable. All servers and workers need the same. Unset:"
        " `key_file`.",
    )
    key_file: Path | None = Field(
        default=None,
        description="File with such keys, one in a line. Unset: `secrets.key` in `home`; a server with the"
        " embedded registry makes it.",
    )
    directories: Annotated[list[str], BeforeValidator(split_paths)] = Field(
        default_factory=lambda: ["/run/secrets"],
        description="Directories below which a Secret may name a file. In the variable, separated by `:`.",
    )
    vault_url: str | None = Field(
        default=None, min_length=1, description="URL of a HashiCorp Vault or OpenBao server."
    )
    vault_token: str | None = Field(
        default=None, min_length=1, description="Token for that server; best set by its variable."
    )
    vault_token_file: Path | None = Field(
        default=None, description="File with the token, read each time; a Vault agent can renew it."
    )
    vault_namespace: str | None = Field(default=None, min_length=1, description="Namespace in that server.")
    vault_ca_file: Path | None = Field(
        default=None, description="PEM file of trusted certificate authorities. Unset: those of the system."
    )
