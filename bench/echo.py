"""An ASGI application that responds immediately: the upper limit for all other servers in the benchmarks."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
from starlette.types import Receive, Scope, Send

from penstock.api.listening import listen, url_of

HOST, START_S = "127.0.0.1", 60.0


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to any request with an empty object."""
    await receive()
    headers = [(b"content-length", b"2"), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


@contextlib.contextmanager
def echo() -> Iterator[tuple[str, int]]:
    """Serve the application in its own process. Yields its URL and process id."""
    listener = listen(HOST, 0)
    command = [sys.executable, "-m", "bench.echo", str(listener.fileno())]
    process = subprocess.Popen(command, pass_fds=[listener.fileno()])
    try:
        url, deadline = url_of(HOST, listener), time.monotonic() + START_S
        listener.close()
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                httpx.post(url, trust_env=False)
                break
            time.sleep(0.1)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    import uvicorn

    config = uvicorn.Config(
        answer, lifespan="off", log_level="warning", access_log=False, server_header=False
    )
    # Not as `fd`, which uvicorn treats as a UNIX socket: responses would wait for TCP acknowledgements.
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
