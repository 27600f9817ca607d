"""The thread that runs the connection of an MQTT client."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

KEEPALIVE_CHECK_MS = 1000

END_S = 2.0
"""Seconds that a connection may take to disconnect before it is closed."""


class ClientLoop:
    """Reads and writes for a paho client in a thread.

    The library's own loop waits with `select.select`, which fails for descriptors above 1,023, as in a worker
    with many flows. A socket pair wakes the thread up when another thread has queued a packet.
    """

    def __init__(self, client: Any, failed: Callable[[Exception], None]) -> None:
        """`failed` is called in the thread with the error of a callback."""
        self._client, self._failed = client, failed
        self._awake, self._wake = socket.socketpair()
        for end in (self._awake, self._wake):
            end.setblocking(False)
        self._end: float | None = None
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)
        client.on_socket_register_write = lambda *_: self._wake_up()

    def start(self) -> None:
        """Start the thread, once the client has a socket."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread when the client has disconnected, or after `END_S` seconds."""
        self._end = time.monotonic() + END_S
        self._wake_up()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        if (open_socket := self._client.socket()) is not None:
            with contextlib.suppress(OSError):
                open_socket.close()
        for end in (self._awake, self._wake):
            end.close()

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):  # full: the thread is awake; closed: it has ended
            self._wake.send(b"\0")

    def _run(self) -> None:
        try:
            while self._end is None or time.monotonic() < self._end:
                if (connected := self._client.socket()) is None or not self._turn(connected):
                    return
        except Exception as error:  # from a callback; it would be lost with the thread
            self._failed(error)

    def _turn(self, connected: Any) -> bool:
        """Wait until the socket is ready, then read and write; false if the connection has ended."""
        poll = select.poll()
        pending = getattr(connected, "pending", lambda: 0)()
        number = connected.fileno()
        if number < 0:
            return False
        poll.register(number, select.POLLIN | (select.POLLOUT if self._client.want_write() else 0))
        poll.register(self._awake, select.POLLIN)
        wait_ms = 0 if pending else KEEPALIVE_CHECK_MS if self._end is None else 50
        ready = dict(poll.poll(wait_ms))
        if self._awake.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._awake.recv(4096)
        events = ready.get(number, 0)
        if (pending or events & ~select.POLLOUT) and self._client.loop_read():
            return False
        if self._client.want_write() and events & select.POLLOUT and self._client.loop_write():
            return False
        return not self._client.loop_misc()
