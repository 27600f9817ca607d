"""A batch in which every event fails. A worker with the default memory survives it, as do its other flows.

Takes minutes, so it is for `make nightly`. `tests/engine/test_computed_once.py` does it with fewer events.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import wait_for
from tests.product import Product
from tests.streams.kit import NIGHTLY

pytestmark = pytest.mark.slow

EVENTS, PATIENCE_S = 1_000_000, 1500

CAST = {"type": "sql", "query": "SELECT id, CAST(text AS INT) AS n FROM input"}


def flood(product: Product, file: Path) -> None:
    """A million events of 1 kB fail in one batch, beside a flow that gets one event after the other."""
    client = product.client
    client.post("/streams", json={"metadata": {"name": "in"}, "spec": {}}).raise_for_status()
    reads, drop = {"type": "stream", "stream": "in"}, [{"type": "drop"}]
    product.create({"metadata": {"name": "neighbour"}, "spec": {"source": reads, "sinks": drop}})
    schema = "id BIGINT, text STRING"
    source = {"type": "file", "path": str(file), "format": "json", "schema": schema, "finite": True}
    product.create(
        {"metadata": {"name": "flood"}, "spec": {"source": source, "processors": [CAST], "sinks": drop}}
    )
    sent = 0

    def flow(name: str) -> dict[str, Any]:
        return dict(client.get(f"/pipelines/{name}").json())

    def over() -> bool:
        nonlocal sent
        client.post("/streams/in/events", json=[{"n": sent}]).raise_for_status()
        sent += 1
        return flow("flood")["status"] in ("completed", "failed")

    wait_for("the end of the flood", over, PATIENCE_S)
    assert (flow("flood")["status"], flow("flood")["ops"]["dead_letters"]) == ("completed", EVENTS)
    wait_for("the neighbour", lambda: flow("neighbour")["ops"]["sinks"]["drop"]["events"] == sent, 60)
    for name in ("flood", "neighbour"):
        assert flow(name)["attempts"] == [], name


if NIGHTLY:

    def test_a_million_letters_in_one_batch(tmp_path: Path) -> None:
        with (tmp_path / "in.json").open("w") as out:
            for i in range(EVENTS):
                out.write(json.dumps({"id": i, "text": "x" * 1000}) + "\n")
        product = Product(tmp_path / "home")
        product.directory.mkdir()
        try:
            product.up()
            flood(product, tmp_path / "in.json")
        finally:
            product.close()
