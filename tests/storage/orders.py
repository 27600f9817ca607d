"""Orders, pipelines over them, and a plain model of what they make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import httpx

SCHEMA = "n BIGINT, customer STRING, at TIMESTAMP"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CUSTOMERS, STEP_MS, WINDOW_S = 7, 100, 10


class Served(Protocol):
    """A Penstock that is used over HTTP."""

    client: httpx.Client


def order(n: int) -> dict[str, Any]:
    """An event."""
    at = BEGIN + timedelta(milliseconds=n * STEP_MS)
    return {"n": n, "customer": f"c{n % CUSTOMERS}", "at": at.isoformat()}


def send(product: Served, first: int, end: int) -> None:
    """Append orders to the stream `orders`."""
    answer = product.client.post("/streams/orders/events", json=[order(n) for n in range(first, end)])
    assert answer.status_code in (200, 201), answer.text


def make_stream(product: Served, name: str, schema: str | None = None) -> None:
    document = {"kind": "Stream", "metadata": {"name": name}, "spec": {"schema": schema} if schema else {}}
    answer = product.client.post("/streams", json=document)
    assert answer.status_code == 201, answer.text


def pipeline(name: str, **spec: Any) -> dict[str, Any]:
    """A pipeline that reads all orders in small batches."""
    given = {
        "source": {"type": "stream", "stream": "orders", "until": "latest"},
        "batch": {"max_events": 100, "max_inflight": 1},
        "restart": {"backoff_ms": 100},
        **spec,
    }
    return {"kind": "Pipeline", "metadata": {"name": name}, "spec": given}


def windows_pipeline(name: str, stream: str) -> dict[str, Any]:
    """Stream → window → stream."""
    window = {
        "id": "window",
        "type": "window",
        "kind": "tumbling",
        "time": "at",
        "size": f"{WINDOW_S}s",
        "keys": ["customer"],
        "aggregates": {"orders": "count(*)", "total": "sum(n)"},
    }
    return pipeline(name, processors=[window], sinks=[{"type": "stream", "stream": stream}])


def windows(count: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The model of the window: number and total by its start and customer."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for n in range(count):
        start = BEGIN + timedelta(seconds=n * STEP_MS // 1000 // WINDOW_S * WINDOW_S)
        key = start.isoformat(), f"c{n % CUSTOMERS}"
        number, total = found.get(key, (0, 0))
        found[key] = number + 1, total + n
    return found


def found_windows(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    """The windows among events; each may be there once."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        start = datetime.fromisoformat(row["window_start"]).astimezone(UTC).isoformat()
        assert (start, row["customer"]) not in found, "each window once"
        found[start, row["customer"]] = row["orders"], row["total"]
    return found


def doubles_pipeline(name: str, stream: str, files: str, **sink: Any) -> dict[str, Any]:
    """Stream → SQL → stream and files."""
    query = "SELECT n, n * 2 AS twice FROM input WHERE n % 5 <> 0"
    sinks = [
        {"id": "kept", "type": "stream", "stream": stream},
        {"id": "files", "type": "file", "path": files, "format": "json", **sink},
    ]
    return pipeline(name, processors=[{"id": "double", "type": "sql", "query": query}], sinks=sinks)


def doubles(count: int) -> list[tuple[int, int]]:
    """The model of the query."""
    return [(n, 2 * n) for n in range(count) if n % 5]


def events_in(product: Served, stream: str) -> list[Any]:
    """The columns of all events of a stream, or their values if it has no schema."""
    found: list[Any] = []
    position = 0
    while True:
        params = {"position": f"offset:{position}", "limit": 10_000}
        page = product.client.get(f"/streams/{stream}/events", params=params).json()
        if not page["events"]:
            return found
        found += [event["columns"] if "columns" in event else event["value"] for event in page["events"]]
        position = page["next"]
