"""Orders, what a pipeline makes of them, and a plain model of it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SCHEMA = "n BIGINT, customer STRING, at TIMESTAMP"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CUSTOMERS, NAMED, BAD, STEP_MS, WINDOW_S = 7, 5, 97, 100, 60

SCRIPT = f"""
function processBatch(events) {{
  return events.map(event => {{
    if (event.n % {BAD} === 0) throw new Error('bad ' + event.n)
    return {{...event, twice: 2 * event.n}}
  }})
}}
"""


def order(n: int) -> dict[str, Any]:
    """An event."""
    at = BEGIN + timedelta(milliseconds=n * STEP_MS)
    return {"n": n, "customer": f"c{n % CUSTOMERS}", "at": at.isoformat()}


def write_customers(path: Path) -> Path:
    """The table of customers, which lacks some of them."""
    path.write_text("id,name\n" + "".join(f"c{i},Customer {i}\n" for i in range(NAMED)))
    return path


def steps(customers: Path) -> list[dict[str, Any]]:
    """A script that fails on some orders, and a table that has no row for others."""
    return [
        {"id": "double", "type": "javascript", "inline": SCRIPT, "schema": f"{SCHEMA}, twice BIGINT"},
        {
            "id": "name",
            "type": "lookup",
            "file": {"path": str(customers)},
            "on": {"customer": "id"},
            "columns": "name STRING",
            "missing": "dead_letter",
        },
    ]


def window() -> dict[str, Any]:
    """Orders by minute and customer."""
    return {
        "id": "minutes",
        "type": "window",
        "kind": "tumbling",
        "time": "at",
        "size": f"{WINDOW_S}s",
        "keys": ["name"],
        "aggregates": {"orders": "count(*)", "total": "sum(twice)"},
    }


def passing(count: int) -> list[dict[str, Any]]:
    """The model of the steps: the orders that pass them."""
    passed = [n for n in range(count) if n % BAD and n % CUSTOMERS < NAMED]
    return [{"n": n, "twice": 2 * n, "name": f"Customer {n % CUSTOMERS}"} for n in passed]


def failing(count: int) -> Counter[tuple[str, str]]:
    """The model of the dead letters: their number by step and code."""
    bad = sum(1 for n in range(count) if not n % BAD)
    unknown = sum(1 for n in range(count) if n % BAD and n % CUSTOMERS >= NAMED)
    return Counter({("double", "js_error"): bad, ("name", "not_found"): unknown})


def windows(count: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The model of the window: number and total by its start and customer."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for each in passing(count):
        start = BEGIN + timedelta(seconds=each["n"] * STEP_MS // 1000 // WINDOW_S * WINDOW_S)
        number, total = found.get((start.isoformat(), each["name"]), (0, 0))
        found[start.isoformat(), each["name"]] = number + 1, total + each["twice"]
    return found
