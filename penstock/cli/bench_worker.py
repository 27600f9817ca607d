"""Measures a pipeline whose events are on another machine, on a worker of its server.

The worker runs a replay with a `drop` sink: a separate pipeline, deleted at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from penstock.cli.client import Client, path_of
from penstock.cli.kinds import target_of
from penstock.engine.measure.events import Input
from penstock.engine.measure.figures import STAGES, Figures, Stage, balance_of, stage_of, steps_of
from penstock.engine.measure.places import written
from penstock.engine.measure.run import Interrupted
from penstock.engine.plan.flow import Flow
from penstock.errors import Conflict, PenstockError, Problem

POLL_S = 0.5
OVER = ("completed", "failed", "stopped", "paused")
SHADOW = {"shadow": {"type": "drop"}}


def measure_on_worker(
    client: Client,
    name: str,
    raw: Mapping[str, Any],
    flow: Flow,
    events: int,
    stop: threading.Event,
    say: Callable[[str], None],
) -> tuple[Input, Figures]:
    """Replay the last `events` events of the stream. Returns the input and the server's figures."""
    _require_private(raw, flow)
    kind, document = target_of(name)
    path = path_of(kind, document, "replay")
    whole = client.call("POST", path, json={"from": "earliest", "sinks": SHADOW, "dry_run": True})["range"]
    first = max(whole["first"], whole["next"] - events)
    order = {"from": f"offset:{first}", "to": f"offset:{whole['next']}", "sinks": SHADOW}
    order["name"] = f"{document} bench {time.time_ns():x}"
    say(
        f"measured by a worker of {client.url} with a precision of 0.5 s: the streams are not on this machine"
    )
    planned = client.call("POST", path, json=order)
    try:
        began, seen, ended = _watch(client, planned["replay"]["id"], stop, say)
    finally:
        client.delete("Pipeline", planned["replay"]["id"])
    seconds = time.monotonic() - began
    if ended["status"] != "completed":
        problem = ended["error"] or {"code": "not_completed", "message": f"the replay is {ended['status']}"}
        raise PenstockError(Problem.model_validate(problem))
    asked = planned["range"]
    about = f"the last {asked['events']:,} events of the stream '{asked['stream']}' of {client.url}"
    given = Input("recorded", about, lambda _: flow.source.component, asked["events"], asked["bytes"])
    return given, _figures(ended["ops"], seen, seconds, flow, asked["events"])


def _require_private(raw: Mapping[str, Any], flow: Flow) -> None:
    """Reject a pipeline whose replay would write to streams other than its own."""
    named = {raw["spec"]["dead_letters"]} if raw["spec"].get("dead_letters") else set()
    if streams := sorted(named | written(flow)):
        message = f"a worker would write dead letters or late events to the stream '{streams[0]}'"
        hint = "run this on the server's machine, where the measurement uses separate streams"
        raise Conflict(Problem(code="writes_streams", message=message, path="spec", hint=hint))


def _watch(
    client: Client, replay: str, stop: threading.Event, say: Callable[[str], None]
) -> tuple[float, dict[int, dict[str, float]], dict[str, Any]]:
    """Poll a replay until it ends: when it was first seen running, durations of batches seen, final state."""
    began = asked = time.monotonic()
    seen: dict[int, dict[str, float]] = {}
    while True:
        now = client.get("Pipeline", replay)
        if last := now["ops"]["last_batch"]:
            seen[last["id"]] = last["durations_ms"]
        if now["status"] in OVER:
            return began, seen, now
        if began == asked and now["phase"] == "running":
            began = time.monotonic()
            say("the worker to start the measurement")
        if stop.wait(POLL_S):
            raise Interrupted


def _figures(
    ops: Mapping[str, Any], seen: Mapping[int, Mapping[str, float]], seconds: float, flow: Flow, counted: int
) -> Figures:
    steps = steps_of(ops, {part.id: part.component.folds for part in flow.processors})
    taken: dict[str, list[float]] = {}
    for durations in seen.values():
        for name, ms in durations.items():
            taken.setdefault("compute" if name == "addBatch" else name, []).append(ms)
    stages: list[Stage] = [stage_of(name, taken[name]) for name in STAGES if name in taken]
    balance = balance_of(ops, steps, routed=False)
    return Figures(seconds, ops["input_events"], counted, ops["batches"], None, None, stages, steps, balance)
