"""The proxy of a drill between a worker and its server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from penstock.cli.drill.proxy import Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before a server that returns what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1024):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    proxy = Proxy(listener.getsockname())
    yield proxy
    proxy.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connection_to(proxy: Proxy) -> socket.socket:
    url = urlsplit(proxy.url)
    return socket.create_connection((str(url.hostname), url.port or 0), 10)


def answer(connection: socket.socket, seconds: float = 10.0) -> bytes | None:
    """The echo of a byte; None if none comes in time."""
    connection.settimeout(seconds)
    connection.sendall(b"x")
    try:
        return connection.recv(1024)
    except TimeoutError:
        return None


def test_a_cut_is_silent_for_open_and_for_new_connections_until_it_heals(proxy: Proxy) -> None:
    with connection_to(proxy) as before:
        assert answer(before) == b"x"
        proxy.cut()
        assert answer(before, 0.3) is None, "not refused: nothing comes"
        with connection_to(proxy) as during:
            assert answer(during, 0.3) is None
            proxy.heal()
            assert before.recv(1024) == b"", "what was sent during the cut is lost, and so is the connection"
            assert during.recv(1024) == b""
        with connection_to(proxy) as after:
            assert answer(after) == b"x"


def test_a_closed_proxy_refuses_connections(proxy: Proxy) -> None:
    proxy.close()
    with pytest.raises(ConnectionRefusedError):
        connection_to(proxy)
