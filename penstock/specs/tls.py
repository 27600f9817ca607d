"""Encryption of connections, as declared by users."""

from __future__ import annotations

import ssl

from pydantic import Field

from penstock.errors import Invalid, Problem
from penstock.specs.base import Spec
from penstock.specs.reach import FilePath


class Tls(Spec):
    """Encrypted connections. Files are read on the worker that runs the flow."""

    ca_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file of trusted certificate authorities. Absent: those of the system.",
    )
    certificate_file: FilePath | None = Field(
        default=None,
        min_length=1,
        description="PEM file with the client's private key and certificates, if the server requires a "
        "client certificate.",
    )
    key_password: str | None = Field(default=None, description="Password of the private key.")
    verify_hostname: bool = Field(
        default=True, description="Whether the server's certificate must match its host name."
    )

    def context(self, path: str = "tls") -> ssl.SSLContext:
        """The context for Python's `ssl`, from the field `path`; `Invalid` if a file can't be used."""
        name, file = "ca_file", self.ca_file
        try:
            made = ssl.create_default_context(cafile=self.ca_file)
            made.check_hostname = self.verify_hostname
            if self.certificate_file is not None:
                name, file = "certificate_file", self.certificate_file
                # Without a password OpenSSL would prompt for it on the terminal.
                made.load_cert_chain(self.certificate_file, password=self.key_password or "")
        except OSError as error:  # includes the errors of `ssl`
            message = f"can't use '{file}': {reason_of(error).lower()}"
            hint = "check that the file is on the worker, is PEM, and that key_password is correct"
            problem = Problem(code="tls_file", message=message, path=f"{path}.{name}", hint=hint)
            raise Invalid(problem) from None
        return made


def reason_of(error: BaseException) -> str:
    """The message of a connection error, without the name of its class."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    text = getattr(error, "strerror", None) or str(error)
    return str(text) or "no response"
