"""Documents of a server as tables and pages. Prints responses of the API; loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.cli.kinds import RUNNABLE
from penstock.cli.output import say, show_table
from penstock.cli.text import count, rate, when
from penstock.specs.text import to_yaml

STATUS_STYLES = {
    "active": "green",
    "completed": "blue",
    "paused": "yellow",
    "stopped": "yellow",
    "failed": "bold red",
}
KEPT_REVISIONS = 10
"""Maximum revisions on a page; `penstock revisions` shows all of them."""


def document(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """The document in a response of the API, in the form in which it can be applied again."""
    wanted = {"status": item["status"]} if item.get("status") in ("active", "paused", "stopped") else {}
    metadata = {key: value for key, value in item["metadata"].items() if value}
    return {"apiVersion": "penstock/v1", "kind": kind, "metadata": metadata, "spec": item["spec"], **wanted}


def show_list(kind: str, items: Sequence[dict[str, Any]]) -> None:
    """Print a table of documents."""
    if kind == "Pipeline":
        show_table(
            ["NAME", "STATUS", "PHASE", "IN", "OUT", "RATE", "UPDATED", "ERROR"],
            [_pipeline(i) for i in items],
        )
    else:
        runnable = kind in RUNNABLE
        show_table(
            [
                "NAME",
                "TYPE",
                *(["STATUS", "PHASE"] if runnable else []),
                "REVISION",
                "UPDATED",
                "DESCRIPTION",
            ],
            [
                [
                    item["name"],
                    _type(kind, item["spec"]),
                    *([item["status"] or "-", phase_of(item)] if runnable else []),
                    str(item["revision"]),
                    when(item["updated_at"]),
                    item["metadata"].get("description") or "",
                ]
                for item in items
            ],
        )


def _pipeline(item: dict[str, Any]) -> list[str]:
    ops, error = item.get("ops") or {}, current_error(item) or {}
    sinks = (ops.get("sinks") or {}).values()
    return [
        item["name"],
        item["status"],
        phase_of(item),
        count(ops.get("input_events")),
        count(sum(sink.get("events", 0) for sink in sinks)),
        rate(float(ops.get("events_per_second") or 0.0)) if item["status"] == "active" else "-",
        when(item["updated_at"]),
        str(error.get("message") or "")[:80],
    ]


def current_error(item: dict[str, Any]) -> dict[str, Any] | None:
    """The error of a flow, unless the flow has processed a batch since then."""
    error = item.get("error")
    return None if error is None or error.get("recovered") else dict(error)


def phase_of(item: dict[str, Any]) -> str:
    """The phase of a document; while it waits for its turn to start, with its position in the queue."""
    place = item.get("queue_position")
    return str(item["phase"] or "-") + (f" #{place}" if place else "")


def _type(kind: str, spec: dict[str, Any]) -> str:
    if kind == "Stream":
        return str(spec.get("storage", "local"))
    if kind == "Task":
        return " → ".join(str(step.get("type")) for step in spec.get("processors", []))
    return str(spec.get("type", "-"))


def show_page(kind: str, about: dict[str, Any]) -> None:
    """Print a document in detail."""
    say((f"{kind} {about['name']}", "bold"))
    _fields({"id": about["id"], "description": about["metadata"].get("description")})
    _fields({"labels": ", ".join(f"{k}={v}" for k, v in (about["metadata"].get("labels") or {}).items())})
    if about.get("status"):
        _show_state(about)
    _fields(
        {
            "revision": about["revision"],
            "created": when(about["created_at"]),
            "updated": when(about["updated_at"]),
        }
    )
    _fields({"sent events": about.get("guarantee")})
    for referrer in about.get("referrers") or []:
        _fields({"used by": f"{referrer['kind'].lower()} {referrer['name']} ({referrer['path']})"})
    _show_counters(about.get("ops") or {})
    _show_revisions(about.get("revisions", []))
    say(("\nspec", "bold"))
    for line in to_yaml(about["spec"]).splitlines():
        say(f"  {line}")


def _show_state(about: dict[str, Any]) -> None:
    status = about["status"]
    style = STATUS_STYLES.get(status, "")
    if status == "active" and about["phase"] != "running":
        style = "bold red" if about["phase"] == "stalled" else "yellow"
    say(("  status       ", "dim"), (status, style), f" ({phase_of(about)})")
    _fields({"worker": about.get("worker")})
    waits = about.get("waits_for") or {}
    _fields({"waits for": waits.get("message"), "how to fix": waits.get("hint")})
    error = current_error(about)
    if error:
        where = f" {error['path']}:" if error.get("path") else ""
        say(("  error        ", "dim"), (f"[{error['code']}]{where} {error['message']}", "red"))
        _fields({"hint": error.get("hint"), "since": when(error.get("at"))})
    if failed := about.get("failed_attempts"):
        _fields({"attempts": f"{failed} failed since the last good batch"})
    _fields({"last good": when((about.get("ops") or {}).get("good_at"))})


def _show_counters(ops: dict[str, Any]) -> None:
    if not ops:
        return
    say(("\nevents", "bold"))
    _fields(
        {
            "in": count(ops.get("input_events")),
            "batches": count(ops.get("batches")),
            "dead letters": count(ops["dead_letters"]) if ops.get("dead_letters") else None,
            "rate": rate(float(ops.get("events_per_second") or 0.0)),
            "latency": _latency(ops["latency"]) if ops.get("latency") else None,
        }
    )
    say()
    show_table(
        ["  SINK", "OUT", "BATCHES", "FAILURES", "MISSED", "LAST", "GUARANTEE", "ERROR"],
        [
            [
                f"  {name}",
                count(sink.get("events")),
                count(sink.get("batches")),
                count(sink.get("failures")),
                count(sink.get("missed_batches")),
                when(sink.get("last_ack_at")),
                str(sink.get("guarantee", "")),
                str(sink.get("last_error") or ""),
            ]
            for name, sink in (ops.get("sinks") or {}).items()
        ],
    )


def _latency(goal: dict[str, Any]) -> str:
    """The latency goal of a flow, and whether it is met."""
    target = f"goal {goal['target_ms']:,} ms"
    if goal["met"] is None:
        return f"{target}, no events in the last seconds"
    found = f"99% of events within {goal['p99_ms']:,.0f} ms, {target}"
    return f"{found} met" if goal["met"] else f"{found} not met: {goal['reason']}"


def _show_revisions(revisions: Sequence[dict[str, Any]]) -> None:
    if not revisions:
        return
    say(("\nrevisions", "bold"))
    for revision in revisions[:KEPT_REVISIONS]:
        say(f"  {revision['revision']:>4}  {revision['origin']:<16}  {when(revision['created_at'])}")
    if len(revisions) > KEPT_REVISIONS:
        say(f"        and {len(revisions) - KEPT_REVISIONS} older ones")


def _fields(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value not in (None, ""):
            say((f"  {name:<13}", "dim"), str(value))
