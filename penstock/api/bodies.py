"""Request bodies: JSON or YAML, whatever their Content-Type says."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from penstock.errors import PenstockError, Problem
from penstock.specs.text import Unreadable, read_all, read_one

MOST_BYTES = 10 * 1024 * 1024
"""A body larger than this is refused before it fills the memory."""

JSON, YAML = "application/json", "application/yaml"


class TooLarge(PenstockError):
    """The body exceeds what a request may hold."""

    status = 413


async def _body(request: Request) -> bytes:
    if int(request.headers.get("content-length", 0)) > MOST_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise _too_large()
    except ClientDisconnect:
        raise PenstockError(
            Problem(code="incomplete_body", message="the request body is incomplete")
        ) from None
    return bytes(body)


# Plain functions, so that parsing a large text happens in a thread and not in the event loop.


def _one(body: Annotated[bytes, Depends(_body)]) -> Any:
    value = read_one(body)
    if value is None:
        raise _empty()
    return value


def _all(body: Annotated[bytes, Depends(_body)]) -> list[Any]:
    documents = read_all(body)
    if not documents and read_one(body) is None:
        raise _empty()
    return documents


OneBody = Annotated[Any, Depends(_one)]
"""The one value in the body."""

AllBody = Annotated[list[Any], Depends(_all)]
"""Every document in the body."""


def described(schema: dict[str, Any], *media_types: str) -> dict[str, Any]:
    """The part of OpenAPI that declares a body of `schema`."""
    content = {media_type: {"schema": schema} for media_type in media_types or (JSON, YAML)}
    return {"requestBody": {"required": True, "content": content}}


def _empty() -> Unreadable:
    return Unreadable(
        Problem(code="empty_body", message="the request has no body", hint="send a document as JSON or YAML")
    )


def _too_large() -> TooLarge:
    message = f"the body has more than {MOST_BYTES} bytes"
    return TooLarge(
        Problem(code="body_too_large", message=message, hint="send the documents in several requests")
    )
