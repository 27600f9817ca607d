"""Sockets that receive syslog messages. Nothing is read unless requested, which blocks TCP senders."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
from collections import deque
from typing import Literal

from penstock.connectors.syslog.framing import Frames, Framing

Transport = Literal["udp", "tcp", "tls"]

SO_RXQ_OVFL = 40
"""The socket option with which Linux reports the number of dropped datagrams with each datagram."""

READ = 65536
"""Bytes to read at a time; no datagram is larger."""

Found = tuple[bytes, str]
"""A message, and the address of its sender."""


class Listener:
    """Receives messages on an address. Used by one thread, except for `stop`."""

    def __init__(
        self,
        address: tuple[str, int],
        transport: Transport,
        *,
        framing: Framing = "auto",
        max_bytes: int = 65536,
        buffer_bytes: int = 8 * 1024 * 1024,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Start listening; raises `OSError` on failure."""
        self._transport, self._framing, self._max, self._tls = transport, framing, max_bytes, tls
        self.dropped = 0
        """Number of datagrams that the system has dropped because they were not read in time."""
        self._seen_drops = 0
        self._pending: deque[Found] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
        self._socket = socket.socket(family, kind)
        try:
            if transport == "udp":
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
                with contextlib.suppress(OSError):  # systems other than Linux
                    self._socket.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
            else:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            if transport != "udp":
                self._socket.listen(128)
            self._socket.setblocking(False)
            self._selector.register(self._socket, selectors.EVENT_READ)
            self._selector.register(self._wake_in, selectors.EVENT_READ)
        except BaseException:
            self.close()
            raise

    def take(self, seconds: float, most: int) -> list[Found]:
        """Up to `most` messages; may be empty if none arrive within `seconds`."""
        if not self._pending:
            for key, _ in self._selector.select(seconds):
                if key.fileobj is self._socket:
                    self._datagrams(most) if self._transport == "udp" else self._accept()
                elif isinstance(key.data, _Sender):
                    self._read(key.data)
        return [self._pending.popleft() for _ in range(min(most, len(self._pending)))]

    def stop(self) -> None:
        """Make a `take` that is waiting return. Called by another thread."""
        with contextlib.suppress(OSError):
            self._wake_out.send(b"x")

    def close(self) -> None:
        """Close all sockets."""
        for key in list((self._selector.get_map() or {}).values()):
            if isinstance(key.data, _Sender):
                key.data.socket.close()
        self._selector.close()
        for each in (self._socket, self._wake_in, self._wake_out):
            each.close()

    def _datagrams(self, most: int) -> None:
        while len(self._pending) < most:
            try:
                data, notes, _, sender = self._socket.recvmsg(READ, 64)
            except BlockingIOError:
                return
            for level, kind, note in notes:
                if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                    drops = struct.unpack("I", note[:4])[0]
                    self.dropped += (drops - self._seen_drops) % 2**32
                    self._seen_drops = drops
            self._pending.append((data, f"{sender[0]}:{sender[1]}"))

    def _accept(self) -> None:
        try:
            accepted, address = self._socket.accept()
        except OSError:  # the sender has already disconnected
            return
        accepted.setblocking(False)
        if self._tls is not None:
            accepted = self._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        sender = _Sender(accepted, f"{address[0]}:{address[1]}", Frames(self._framing, self._max))
        self._selector.register(accepted, selectors.EVENT_READ, sender)

    def _read(self, sender: _Sender) -> None:
        """Read once from a sender; TLS may have read more from the network than it returns."""
        try:
            while True:
                data = sender.socket.recv(READ)
                if not data:
                    break
                self._pending += [(frame, sender.name) for frame in sender.frames.feed(data)]
                if not (isinstance(sender.socket, ssl.SSLSocket) and sender.socket.pending()):
                    return
        except (BlockingIOError, ssl.SSLWantReadError):
            self._selector.modify(sender.socket, selectors.EVENT_READ, sender)
            return
        except ssl.SSLWantWriteError:
            self._selector.modify(sender.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, sender)
            return
        except OSError:  # reset, or not a TLS client: data received before is valid
            pass
        if (last := sender.frames.end()) is not None:
            self._pending.append((last, sender.name))
        self._selector.unregister(sender.socket)
        sender.socket.close()


class _Sender:
    def __init__(self, connection: socket.socket, name: str, frames: Frames) -> None:
        self.socket, self.name, self.frames = connection, name, frames
