"""The keys that seal and open secret values: AES-256-GCM, bound to the id of the secret.

A key is 32 bytes in Base64. A key file has one key per line: the first key seals, all keys open, so a key can
be rotated while values that were sealed with the old key are still in use.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Invalid, Problem, Unavailable
from penstock.settings import Settings

VERSION = "v1"
NONCE_BYTES = 12
KEY_BYTES = 32


@dataclass(frozen=True)
class Keys:
    """The keys of an installation. They are read on demand."""

    given: str | None
    """The keys from the setting; None: from the file."""
    file: Path

    @classmethod
    def of(cls, settings: Settings) -> Keys:
        """The keys according to the settings."""
        chosen = settings.secrets
        return cls(chosen.key, chosen.key_file or settings.home / "secrets.key")

    def make(self) -> None:
        """Create the key file, with one key, unless there are keys."""
        if self.given is not None or self.file.exists():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(prefix=".", dir=self.file.parent)  # readable only by this user
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(made, self.file)  # atomic, and never replaces the file of another process
        except FileExistsError:
            pass
        finally:
            os.unlink(made)

    def seal(self, secret: str, value: str) -> str:
        """The value of a secret, sealed."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = self._all()[0], os.urandom(NONCE_BYTES)
        sealed = nonce + AESGCM(key).encrypt(nonce, value.encode(), _bound(secret))
        return f"{VERSION}.{_fingerprint(key)}.{base64.urlsafe_b64encode(sealed).decode()}"

    def open(self, secret: str, sealed: str) -> str:
        """The value of a secret; `Invalid` if it was not sealed for this secret, or not with these keys."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        version, fingerprint, text = [*sealed.split("."), "", ""][:3]
        try:
            content = base64.urlsafe_b64decode(text)
        except ValueError:
            content = b""
        if version != VERSION or len(content) <= NONCE_BYTES:
            raise Invalid(_problem(secret, "is damaged", "set its value again"))
        key = next((each for each in self._all() if _fingerprint(each) == fingerprint), None)
        if key is None:
            hint = f"add that key to {self._place}, or set the value again"
            raise Invalid(_problem(secret, "was sealed with a key that this process does not have", hint))
        try:
            return AESGCM(key).decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], _bound(secret)).decode()
        except (InvalidTag, UnicodeDecodeError):
            hint = "a sealed value belongs to the secret for which it was made: set the value again"
            raise Invalid(_problem(secret, "cannot be opened: it is damaged, or another's", hint)) from None

    def _all(self) -> list[bytes]:
        try:
            text = self.given if self.given is not None else self.file.read_text()
        except OSError as error:
            message = f"the key for secrets can't be read: {error.strerror}"
            raise Unavailable(_key_problem(message, self._place)) from None
        try:
            keys = [base64.b64decode(word, validate=True) for word in text.replace(",", " ").split()]
        except ValueError:
            keys = []
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            message = f"the key for secrets is not {KEY_BYTES} bytes in Base64"
            raise Unavailable(_key_problem(message, self._place))
        return keys

    @property
    def _place(self) -> str:
        return "secrets.key" if self.given is not None else str(self.file)


def _bound(secret: str) -> bytes:
    return f"secret/{secret}".encode()


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:8]


def _problem(secret: str, what: str, hint: str) -> Problem:
    return Problem(code="secret_unreadable", message=f"the secret '{secret}' {what}", hint=hint)


def _key_problem(message: str, place: str) -> Problem:
    hint = f"give this process the key of the server: {place}, or the setting secrets.key"
    return Problem(code="no_secret_key", message=message, hint=hint)
