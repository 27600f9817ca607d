"""Request bodies: JSON or YAML, regardless of their Content-Type."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from penstock.errors import PenstockError, Problem
from penstock.specs.text import Unreadable, read_all, read_one

JSON, YAML = "application/json", "application/yaml"


class TooLarge(PenstockError):
    """The body exceeds the size limit of requests."""

    status = 413


async def read_body(request: Request, limit: int | None = None) -> bytes:
    """The body of a request; TooLarge, before it fills memory, if it has more than `limit` bytes."""
    if limit is not None and int(request.headers.get("content-length", 0)) > limit:
        raise too_large(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if limit is not None and len(body) > limit:
                raise too_large(limit)
    except ClientDisconnect:
        raise PenstockError(
            Problem(code="incomplete_body", message="the request body is incomplete")
        ) from None
    return bytes(body)


async def _body(request: Request) -> bytes:
    return await read_body(request)  # limited by `BodyLimit`


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
    """The part of the OpenAPI document that declares a body of `schema`."""
    content = {media_type: {"schema": schema} for media_type in media_types or (JSON, YAML)}
    return {"requestBody": {"required": True, "content": content}}


def _empty() -> Unreadable:
    return Unreadable(
        Problem(code="empty_body", message="the request has no body", hint="send a document as JSON or YAML")
    )


def too_large(limit: int) -> TooLarge:
    """The error for a body with more than `limit` bytes."""
    message = f"the body has more than {limit} bytes"
    return TooLarge(
        Problem(code="body_too_large", message=message, hint="send the documents in several requests")
    )
