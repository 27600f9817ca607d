"""A TCP proxy on loopback that can cut the connection between a worker and its server."""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK = 64 * 1024
CONNECT_S = 5.0


class Proxy:
    """Forwards connections to `target`. While cut, connections stay open and no data passes.

    This simulates a network failure between two machines: no response, rather than a refused connection.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        """The URL to use in place of the target's."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = self._closed = False
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """Drop all data from now on, in both directions."""
        self._cut = True

    def heal(self) -> None:
        """Forward new connections again; connections from before the cut are closed."""
        with self._lock:
            self._cut, stale = False, list(self._open)
        for each in stale:
            _close(each)

    def close(self) -> None:
        """Close all connections, and accept no more."""
        self._closed = True
        _close(self._listener)
        self.heal()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:  # the listener was closed
                return
            threading.Thread(target=self._serve, args=(near,), name="proxy", daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with self._lock:
            self._open.add(near)
            silent = self._cut
        if silent:
            return  # open until the cut has healed
        try:
            far = socket.create_connection(self._target, CONNECT_S)
            far.settimeout(None)
        except OSError:
            self._end(near)
            return
        with self._lock:
            self._open.add(far)
        threading.Thread(target=self._pump, args=(far, near), name="proxy", daemon=True).start()
        self._pump(near, far)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if self._cut:
                    return  # lost; both ends stay open until the cut has healed
                sink.sendall(data)
        if not self._cut:
            self._end(source)
            self._end(sink)

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
        _close(connection)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
