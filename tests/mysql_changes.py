"""A `mysql_cdc` source in tests without Spark: its events as rows, and tables as its events make them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.connectors.mysql_cdc.inference import inferred
from penstock.connectors.mysql_cdc.receiver import BinlogReceiver
from penstock.connectors.mysql_cdc.source import MySqlCdcSource
from penstock.connectors.received import Ended, Received
from penstock.frames.site import Site
from penstock.policy import UNRESTRICTED
from tests.mariadb_server import MariaDB

PATIENCE_S = 30.0

Row = dict[str, Any]


def source_of(server: MariaDB, *tables: str, **fields: Any) -> MySqlCdcSource:
    """A source as it is after it was saved."""
    source = MySqlCdcSource.model_validate({"url": server.url(), "tables": list(tables), **fields})
    if source.typed and source.schema_ is None:
        return source.model_copy(update={"schema_": inferred(source)})
    return source


def site(state: Path | None = None, flow: str = "pipeline:test:1") -> Site:
    """The site of a flow without streams."""
    return Site(flow, 1, lambda name: None, "in", state=state, policy=UNRESTRICTED)  # type: ignore[arg-type,return-value]


@contextmanager
def opened(
    source: MySqlCdcSource, position: str | None = None, state: Path | None = None
) -> Iterator[BinlogReceiver]:
    """A receiver that is connected meanwhile."""
    receiver = BinlogReceiver(source, site(state))
    try:
        receiver.open(position)
        yield receiver
    finally:
        receiver.close()


def received(receiver: BinlogReceiver, enough: int | None = None, quiet_s: float = 1.5) -> list[Received]:
    """What a receiver gives: up to a number of events, or until it is quiet, or has ended."""
    found: list[Received] = []
    count, since = 0, time.monotonic()
    while time.monotonic() < since + PATIENCE_S:
        try:
            part = receiver.receive(0.2)
        except Ended:
            break
        if part is None and enough is None and time.monotonic() > since + quiet_s:
            break
        if part is not None:
            found.append(part)
            count, since = count + part.events.num_rows, time.monotonic()
        if enough is not None and count >= enough:
            return found
    assert enough is None or count >= enough, f"{count} of {enough} events"
    return found


def events(parts: list[Received]) -> list[Row]:
    """The events as rows."""
    return [row for part in parts for row in part.events.to_pylist()]


def folded(found: list[Row], into: dict[Any, Row] | None = None) -> dict[Any, Row]:
    """A table as its events make it, by the key of its rows."""
    table = {} if into is None else into
    for event in found:
        if event["op"] == "t":
            table.clear()
        elif event["op"] == "d":
            table.pop(event["_key"], None)
        else:
            table[event["_key"]] = event["after"]
    return table


def key(**values: Any) -> bytes:
    """The key of an event."""
    return json.dumps(values, separators=(",", ":")).encode()


def content(server: MariaDB, table: str) -> dict[bytes, Row]:
    """The rows of a table, by the key of their events."""
    rows = server.run(f"SELECT id, v, n FROM {table}")
    return {b'{"id":%d}' % row[0]: dict(zip(("id", "v", "n"), row, strict=True)) for row in rows}
