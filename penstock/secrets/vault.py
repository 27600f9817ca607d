"""Secrets in HashiCorp Vault, or in OpenBao, which has the same API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.errors import Invalid, Problem, Unavailable
from penstock.settings import Settings
from penstock.specs.secret import VaultField

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Vault:
    """A Vault server. Its address and token are settings: a document could send the token elsewhere."""

    url: str
    token: str | None
    token_file: Path | None
    namespace: str | None
    ca_file: Path | None

    @classmethod
    def of(cls, settings: Settings) -> Vault | None:
        """The server of the settings; None if it is not configured."""
        chosen = settings.secrets
        if chosen.vault_url is None:
            return None
        return cls(
            chosen.vault_url.rstrip("/"),
            chosen.vault_token,
            chosen.vault_token_file,
            chosen.vault_namespace,
            chosen.vault_ca_file,
        )

    def read(self, secret: str, field: VaultField) -> str:
        """The value of a field of a secret in Vault."""
        import ssl

        import httpx

        version = "/data" if field.kv == 2 else ""
        url = f"{self.url}/v1/{field.mount}{version}/{quote(field.path)}"
        headers = {"X-Vault-Token": self._token(), "X-Vault-Request": "true"}
        if self.namespace:
            headers["X-Vault-Namespace"] = self.namespace
        try:
            trusted = ssl.create_default_context(cafile=self.ca_file and self.ca_file.expanduser())
            answer = httpx.get(url, headers=headers, timeout=TIMEOUT_S, verify=trusted)
        except (httpx.HTTPError, OSError) as error:
            message = f"Vault at {self.url} can't be reached: {error}"
            raise Unavailable(Problem(code="vault_unreachable", message=message)) from None
        if answer.status_code in (500, 502, 503, 504) or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            message = f"Vault at {self.url} answers {answer.status_code}{_reason(answer)}"
            raise Unavailable(Problem(code="vault_unavailable", message=message, hint="it may be sealed"))
        where = f"{field.mount}/{field.path}"
        if answer.status_code == httpx.codes.FORBIDDEN:
            raise _refused(secret, f"Vault refuses to show {where}", "check the token and its policies")
        if answer.status_code != httpx.codes.OK:
            hint = "check vault.mount, vault.path and vault.kv"
            raise _refused(secret, f"Vault answers {answer.status_code} for {where}{_reason(answer)}", hint)
        value = _fields(answer, field).get(field.field)
        if not isinstance(value, str):
            raise _refused(secret, f"{where} has no text field '{field.field}'", "check vault.field")
        return value

    def _token(self) -> str:
        if self.token is not None:
            return self.token
        if self.token_file is None:
            message = "there is no token for Vault"
            hint = "set secrets.vault_token_file or secrets.vault_token where the worker runs"
            raise Unavailable(Problem(code="vault_unavailable", message=message, hint=hint))
        try:
            return self.token_file.expanduser().read_text().strip()
        except OSError as error:
            message = f"the token for Vault can't be read: {error.strerror}"
            raise Unavailable(
                Problem(code="vault_unavailable", message=message, hint=str(self.token_file))
            ) from None


def _fields(answer: httpx.Response, field: VaultField) -> dict[str, Any]:
    try:
        data = answer.json()["data"]
        found = data["data"] if field.kv == 2 else data
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(answer: httpx.Response) -> str:
    try:
        errors = answer.json()["errors"]
        return f": {'; '.join(map(str, errors))}" if errors else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _refused(secret: str, what: str, hint: str) -> Invalid:
    return Invalid(Problem(code="secret_unreadable", message=f"the secret '{secret}': {what}", hint=hint))
