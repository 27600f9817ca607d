"""Deliveries of the `http` sink, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.base import Delivered, DeliveryId, Events
from penstock.connectors.http.sink import HttpSink
from penstock.connectors.messages.sink import Message
from penstock.frames.hidden import EVENT
from penstock.frames.site import Site
from tests.flows import NO_STREAMS
from tests.http_server import Asked, Server

SITE: Site = NO_STREAMS


FIRST = DeliveryId("orders", "http", "a", 0)


SECOND = DeliveryId("orders", "http", "a", 1)


class Given(Events):
    """Messages as a batch."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages

    def frame(self) -> Any:
        raise NotImplementedError

    def table(self) -> pa.Table:
        refusal = pa.struct([("code", pa.string()), ("message", pa.string())])
        rows = len(self.messages)
        return pa.table(
            {
                "target": pa.array([m.target for m in self.messages], pa.string()),
                "key": pa.array([m.key for m in self.messages], pa.binary()),
                "value": pa.array([m.value for m in self.messages], pa.binary()),
                "headers": pa.nulls(rows, pa.map_(pa.string(), pa.string())),
                "refusal": pa.nulls(rows, refusal),
                "row": pa.nulls(rows, pa.string()),
                EVENT: pa.nulls(rows, pa.string()),
            }
        )


def events(server: Server, count: int, path: str = "/", **fields: Any) -> list[Message]:
    return [Message(server.url + path, json.dumps({"id": i}).encode(), **fields) for i in range(count)]


def sink(server: Server, **fields: Any) -> HttpSink:
    return HttpSink.model_validate({"type": "http", "url": f"{server.url}/", "timeout_ms": 5000, **fields})


def deliver(made: HttpSink, messages: Sequence[Message], delivery: DeliveryId = FIRST) -> Delivered:
    writer = made.open(SITE)
    try:
        return writer.write(Given(messages), delivery)
    finally:
        writer.close()


def ids(asked: Sequence[Asked]) -> list[Any]:
    """The ids in the bodies of requests: a number, or a list of them."""
    found: list[Any] = []
    for each in asked:
        if each.headers["Content-Type"] == "application/x-ndjson":
            found.append([json.loads(line)["id"] for line in each.body.splitlines()])
        else:
            body = each.json()
            found.append([event["id"] for event in body] if isinstance(body, list) else body["id"])
    return found
