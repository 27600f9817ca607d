"""An HTTP request and its response, or the error if there is no response."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.frames.http.answers import shown

if TYPE_CHECKING:
    import httpx

START = 64 * 1024
"""Maximum bytes to read of a response if only its beginning is needed."""

SHOWN = 300
"""Maximum characters of a response that a message shows."""


@dataclass(frozen=True)
class Answer:
    """The response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True
    """Whether `body` is complete."""

    @property
    def text(self) -> str:
        """The beginning of the body as one line, for a message."""
        text = " ".join(self.body[: 4 * SHOWN].decode(errors="replace").split())
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def exchange(
    client: httpx.Client,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    timeout_s: float,
    most: int = START,
) -> Answer:
    """The response to a request, with up to `most` bytes of its body.

    Raises `Unavailable` if there is no response within `timeout_s`, and `Invalid` if a retry can't help.
    """
    import httpx

    began = time.monotonic()
    # As bytes: the client would reject text with non-ASCII characters.
    sent = {name.encode(): value.encode() for name, value in headers.items()}
    try:
        with client.stream(method, url, headers=sent, content=body) as response:
            found = bytearray()
            for chunk in response.iter_bytes():
                found += chunk
                if len(found) > most:
                    break
                if time.monotonic() - began > timeout_s:  # or a response could trickle in forever
                    raise _late(url, timeout_s)
            return Answer(
                response.status_code, response.headers, bytes(found[:most]), whole=len(found) <= most
            )
    except httpx.TimeoutException:
        raise _late(url, timeout_s) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        message, hint = f"invalid request: {error}", "check the URL and the headers"
        raise Invalid(Problem(code="http_request", message=message, path="url", hint=hint)) from None
    except httpx.RequestError as error:
        raise connection_error(url, error) from None


def _late(url: str, timeout_s: float) -> Unavailable:
    message = f"{shown(url)} did not respond within {timeout_s * 1000:.0f} ms"
    hint = "check the service, or raise timeout_ms"
    return Unavailable(Problem(code="http_timeout", message=message, path="url", hint=hint))


def connection_error(url: str, error: Exception) -> PenstockError:
    """The error for a failed connection: `Invalid` if a retry can't help, else `Unavailable`."""
    causes = list(_causes(error))
    where = shown(url)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        message, hint = f"the host of {where} can't be resolved", "check the host name"
        return Unavailable(Problem(code="unknown_host", message=message, path="url", hint=hint))
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", None) or cause.reason or str(cause)
            message = f"no encrypted connection to {where}: {reason}"
            hint = "check tls.ca_file, the name in the certificate, and whether the server supports TLS"
            return Invalid(Problem(code="http_tls", message=message, path="tls", hint=hint))
    system = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    reason = (system[-1] if system else str(error) or "the connection was lost").rstrip(".").lower()
    message = f"no response from {where}: {reason}"
    hint = "check the address, and that the service is running and reachable from the worker"
    return Unavailable(Problem(code="http_unreachable", message=message, path="url", hint=hint))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
