"""Sources and sinks of DeltaForge: tables from their fields to ours."""

from __future__ import annotations

from penstock.cli.convert.draft import Entry, Note, Same, Table, To, Unmapped
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import boolean, comma_list, number, seconds, text_map

TUNING = Note("tuning of the other system: Penstock has its own")


def _snapshot(node: Node) -> str:
    if node.text() == "always":
        raise Unmapped("a snapshot at every restart has no equivalent: one is taken at the first start")
    return {"never": "never", "initial": "initial"}.get(str(node.value), "never")


SOURCE: dict[str, Entry] = {
    "id": Note("the source is part of the pipeline and needs no id"),
    "dsn": "url",
    "tables": To("tables", comma_list),
    "snapshot.mode": To("snapshot", _snapshot),
    "snapshot.chunk_size": To("snapshot_chunk_rows", number),
    "snapshot.max_parallel_tables": TUNING,
    "on_schema_drift": Same("adapt", "a changed table does not stop the pipeline"),
}
SOURCES: dict[str, tuple[str, Table]] = {
    "mysql": ("mysql_cdc", SOURCE),
    "postgres": (
        "postgres_cdc",
        {
            **SOURCE,
            "slot": "slot",
            "publication": "publication",
            "outbox.prefixes": To("messages", comma_list),
            "start_position": Note("reading begins with the snapshot, or with the slot"),
        },
    ),
}

SINK: dict[str, Entry] = {
    "required": To("required", boolean),
    "send_timeout_secs": TUNING,
    "batch_timeout_secs": To("deadline_ms", seconds),
    "connect_timeout_secs": TUNING,
    "encoding": Same("json", "values are JSON"),
}
SINKS: dict[str, tuple[str, Table]] = {
    "kafka": (
        "kafka",
        {
            **SINK,
            "brokers": To("brokers", comma_list),
            "topic": "topic",
            "exactly_once": Same(False, "delivery is at-least-once", code="changed"),
        },
    ),
    "redis": ("redis", {**SINK, "uri": "url", "stream": "key"}),
    "nats": (
        "nats",
        {
            **SINK,
            "url": To("servers", comma_list),
            "subject": "subject",
            "stream": Note("a message goes to the stream that has its subject"),
            "username": "security.login.username",
            "password": "security.login.password",
        },
    ),
    "http": (
        "http",
        {
            **SINK,
            "url": "url",
            "method": To("method", lambda node: node.text().upper()),
            "headers": To("headers", text_map),
        },
    ),
    "s3": ("file", {**SINK, "compression": To("options", lambda node: {"compression": node.text()})}),
}
BATCH: Table = {
    name: name for name in ("max_events", "max_bytes", "max_ms", "respect_source_tx", "max_inflight")
}
SPEC: Table = {
    "schema_sensing": Note("columns come from the database"),
    "journal": Note("dead letters are always kept, in a stream of the pipeline"),
    "metrics": Note("Penstock has its own metrics"),
    "connection_policy": TUNING,
    "sharding": TUNING,
}
