"""The address at which a worker answers questions, and the certificate for questions over the network."""

from __future__ import annotations

import ipaddress
import shutil
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Invalid, Problem
from penstock.settings import Settings

DAYS = 3650


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate and its private key."""

    certificate: Path
    key: Path


def bound_socket(bind: str) -> socket.socket:
    """A listening socket on `HOST` or `HOST:PORT`; without a port, on a free port."""
    host, port = _parsed(bind)
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        message = f"the worker can't listen on {bind}: {error.strerror or error}"
        raise Invalid(Problem(code="cannot_listen", message=message, path="worker.bind")) from None


def needs_tls(bind: str) -> bool:
    """Whether questions can come from other machines."""
    host, _ = _parsed(bind)
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def certificate_files(settings: Settings) -> CertificateFiles:
    """The certificate of a worker: from the settings, or a self-signed one, created once per home."""
    given = settings.worker
    if given.certificate is not None:
        return CertificateFiles(given.certificate, given.key or given.certificate)
    if given.key is not None:
        raise Invalid(lonely_key("worker"))
    made = CertificateFiles(settings.home / "worker.crt", settings.home / "worker.key")
    if not made.certificate.exists():
        _make(made)
    return made


def lonely_key(section: str) -> Problem:
    """The problem of a key that is set without a certificate."""
    message = "a key is set, but no certificate"
    return Problem(
        code="no_certificate", message=message, path=f"{section}.key", hint=f"set {section}.certificate"
    )


def pinned(certificate: str) -> ssl.SSLContext:
    """A TLS context that trusts exactly one certificate, regardless of its issuer and host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    return context


def _parsed(bind: str) -> tuple[str, int]:
    host, colon, port = bind.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.startswith("[")):
        return host.strip("[]"), int(port)
    return bind.strip("[]"), 0


def _make(files: CertificateFiles) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        raise Invalid(
            Problem(
                code="no_certificate",
                message="a worker needs a certificate to accept connections from other machines, and "
                "`openssl` is not installed",
                path="worker.certificate",
                hint="set worker.certificate and worker.key, or install openssl",
            )
        )
    files.certificate.parent.mkdir(parents=True, exist_ok=True)
    new = CertificateFiles(files.certificate.with_suffix(".crt.new"), files.key)
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", str(DAYS), "-subj", "/CN=penstock-worker"]
    command += ["-keyout", str(new.key), "-out", str(new.certificate)]
    subprocess.run(command, check=True, capture_output=True)
    new.key.chmod(0o600)
    new.certificate.replace(files.certificate)
