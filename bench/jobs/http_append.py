"""A small HTTP server that appends NDJSON bodies to a file: `python -m bench.jobs.http_append FILE PORT`."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvicorn

from bench.jobs.frame_file import append

Message = dict[str, Any]


def main(file: str, port: str) -> None:
    """Serve until the process is stopped."""

    async def app(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if body:
            append(Path(file), pa.RecordBatch.from_pylist([json.loads(line) for line in body.splitlines()]))
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    uvicorn.run(app, port=int(port), log_level="warning", lifespan="off")


if __name__ == "__main__":
    main(*sys.argv[1:])
