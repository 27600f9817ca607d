"""The Python that Spark starts: requests a process from the fork server, or becomes an ordinary Python.

Runs as a script with `-I -S`, so it may import only built-in modules, which makes it fast. Spark calls it
like a Python interpreter: `launcher -m MODULE ARGUMENTS…`.
"""

from __future__ import annotations

import _socket
import os
import sys

SERVER = "PENSTOCK_FORK_SERVER"
"""The environment variable with the path of the fork server's socket."""

LIVES = "pyspark.daemon"
"""The only module whose process communicates with Spark through pipes. They close with the process that Spark
started, so the launcher of a daemon stays until the daemon ends."""


def main() -> None:
    """Pass arguments, environment and standard streams to the fork server."""
    stays = sys.argv[1:3] == ["-m", LIVES]
    try:
        if sys.argv[1:2] != ["-m"]:
            raise LookupError  # Spark queries the version of the interpreter
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(os.environ[SERVER])
        _ask(connection, stays)
        if not connection.recv(1):
            raise LookupError
    except (OSError, LookupError):
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    if stays:
        connection.recv(1)  # the end of the daemon closes the connection


def _ask(connection: _socket.socket, stays: bool) -> None:
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    words = [os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *variables]
    message = b"\0".join(os.fsencode(word) for word in words)
    # Packed like array.array("i"), without the time to import it.
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in ((0, 1, 2) if stays else ()))
    header = len(message).to_bytes(4, "big")
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)] if streams else []
    connection.sendmsg([header], rights)
    connection.sendall(message)


if __name__ == "__main__":
    main()
