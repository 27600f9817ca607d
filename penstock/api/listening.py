"""The address that a server listens on."""

from __future__ import annotations

import errno
import ipaddress
import socket

from penstock.errors import PenstockError, Problem

SEND_BUFFER = 256 * 1024
"""Bytes that the system buffers for a client that doesn't read; by default Linux buffers up to 4 MB."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a host and port; PenstockError with the reason if that fails."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address, family=family, backlog=2048)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # for all its connections
        return listener
    except socket.gaierror:
        raise PenstockError(
            Problem(
                code="unknown_host",
                message=f"there is no address '{host}' to listen on",
                hint="choose another one with --host or PENSTOCK_HOST",
            )
        ) from None
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        what = "is already in use" if taken else f"cannot be used: {error.strerror}"
        raise PenstockError(
            Problem(
                code="port_in_use" if taken else "cannot_listen",
                message=f"port {port} on {host} {what}",
                hint="choose another one with --port or PENSTOCK_PORT, or 0 for a free port",
            )
        ) from None


def url_of(host: str, listener: socket.socket, *, secure: bool = False) -> str:
    """The URL of a server on a socket, as a browser on this machine can open it."""
    port, scheme = listener.getsockname()[1], "https" if secure else "http"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"{scheme}://{host}:{port}"
    if address.is_unspecified:  # all addresses of this machine: use one that a browser can open
        return f"{scheme}://127.0.0.1:{port}"
    return f"{scheme}://[{host}]:{port}" if address.version == 6 else f"{scheme}://{host}:{port}"
