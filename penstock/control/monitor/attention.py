"""Findings that need attention, most urgent first. Each rule yields complete findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.control.monitor.meters import LATELY_S
from penstock.control.monitor.snapshot import Attention, FlowPulse, Look, Severity, StreamPulse
from penstock.control.registry.records import JsonObject
from penstock.plurals import plural
from penstock.specs.references import INPUT

MOST = 200
"""Maximum number of findings shown."""

STARTING_S = 60.0
"""Seconds after the server's start in which a missing worker is not an error: Spark is starting."""

MISSED_S = 15.0
"""Seconds for which a latency goal must be missed to be a finding: one late micro-batch counts for ten."""

LATELY = f"in the last {LATELY_S / 60:.0f} minutes"
"""The time that counts of recent events are over."""

GIB = 1024**3


@dataclass(frozen=True)
class Scene:
    """The input of the rules."""

    look: Look
    started_at: datetime
    floor_bytes: int
    """Free disk space below which streams reject appends."""


Rule = Callable[[Scene], Iterator[Attention]]


def attention(scene: Scene) -> list[Attention]:
    """All findings, most urgent first."""
    found = [each for rule in RULES for each in rule(scene)]
    urgency: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda each: urgency[each.severity])[:MOST]


def no_worker(scene: Scene) -> Iterator[Attention]:
    """No worker is ready, so nothing can run."""
    look = scene.look
    if any(worker.takes_flows for worker in look.workers):
        return
    waiting = sum(flow.status == "active" for flow in look.flows.values())
    failed = next((start for start in look.startup if start.error), None)
    if failed is not None:
        message = f"Worker {failed.worker} failed to start: {(failed.error or '').splitlines()[0]}"
        advice = f"Penstock keeps restarting it. Log: {failed.log}."
        yield Attention("error", "no_worker", message, advice, since=failed.since)
        return
    young = (look.at - scene.started_at).total_seconds() < STARTING_S
    if young:
        message = "No worker is ready yet; starting one takes a few seconds"
        if look.startup:
            message = "A worker is starting" + (
                f"; {plural(waiting, 'flow')} will start then" if waiting else ""
            )
        yield Attention("info", "no_worker", message, "Wait a moment.", since=scene.started_at)
        return
    wanted = f", and {plural(waiting, 'flow')} should be running" if waiting else ""
    yield Attention(
        "error" if waiting else "warning",
        "no_worker",
        f"No worker is ready: nothing can run{wanted}",
        "Start one with `penstock worker`, or check the logs of the workers in the home directory of "
        "Penstock.",
    )


def disk(scene: Scene) -> Iterator[Attention]:
    """The streams are running out of disk space."""
    free, total = scene.look.totals.disk_free_bytes, scene.look.totals.disk_total_bytes
    if not total or free >= max(4 * scene.floor_bytes, min(total // 20, 10 * GIB)):
        return
    refused = free < scene.floor_bytes
    consequence = "streams reject events" if refused else "streams will reject events soon"
    yield Attention(
        "error" if refused else "warning",
        "disk_low",
        f"The disk of the streams has {free / GIB:.1f} GiB left of {total / GIB:.0f}: {consequence}",
        "Free disk space, or lower the retention of the largest streams; it takes effect immediately.",
    )


def worker_stuck(scene: Scene) -> Iterator[Attention]:
    """A worker with a valid lease makes no progress."""
    for worker in scene.look.workers:
        if worker.alive and (ailment := worker.info.get("ailment")):
            flows = f" ({plural(worker.flows, 'flow')})" if worker.flows else ""
            message = f"Worker {worker.id[:8]}{flows} is stuck: {ailment}"
            advice = "If this lasts for worker.stuck_ms, the worker is killed and replaced."
            yield Attention("error", "worker_stuck", message, advice)


def worker_gone(scene: Scene) -> Iterator[Attention]:
    """A worker has ended without deregistering."""
    for gone in scene.look.lately.gone:
        why = f"was stopped because {gone.ailment}" if gone.ailment else "was lost"
        flows = plural(gone.flows, "flow")
        yield Attention(
            "warning",
            "worker_gone",
            f"Worker {gone.id[:8]} {why}; other workers take over its {flows}",
            "Check the end of its log: the usual cause is running out of memory.",
            since=_moment(gone.since),
        )


def stalled(scene: Scene) -> Iterator[Attention]:
    """A flow should process events, but does not."""
    for flow in scene.look.flows.values():
        if flow.status != "active" or flow.phase != "stalled":
            continue
        facts = []
        if flow.failed_attempts:
            facts.append(f"{plural(flow.failed_attempts, 'failed attempt')} since its last good batch")
        elif flow.stalled_since is not None:
            seconds = int(scene.look.at.timestamp() - flow.stalled_since)
            facts.append(f"no batch has finished for {_duration(seconds)}")
        if flow.lag_events:
            grows = " and growing" if flow.lag_growing else ""
            facts.append(f"backlog {plural(flow.lag_events, 'event')}{grows}")
        if not facts:  # it makes progress again; this sample updates the registry
            continue
        waits = f"; {flow.waits_for['message']}" if flow.waits_for else _why(flow)
        message = f"{_title(flow)} is stalled: {', '.join(facts)}{waits}"
        advice = _fix(flow, "it is retried automatically")
        yield _of(flow, "error", "stalled", message, advice, flow.good_at or _erred(flow))


def failed(scene: Scene) -> Iterator[Attention]:
    """A flow has failed and is no longer retried."""
    for flow in scene.look.flows.values():
        if flow.status == "failed":
            advice = _fix(flow, f"then start it again: `penstock start {_name(flow)}`")
            message = f"{_title(flow)} has failed{_why(flow)}"
            yield _of(flow, "error", "failed", message, advice, _erred(flow))


def unplaced(scene: Scene) -> Iterator[Attention]:
    """A flow should run, but can't be assigned to any worker."""
    for flow in scene.look.flows.values():
        if flow.waits_for:
            message = f"{_title(flow)} is waiting: {flow.waits_for['message']}"
            hint = str(flow.waits_for.get("hint") or "open it")
            advice = f"{hint[0].upper()}{hint[1:]}."
            yield _of(flow, "warning", str(flow.waits_for["code"]), message, advice, flow.updated_at)


def stream_full(scene: Scene) -> Iterator[Attention]:
    """A stream is full, and rejects events."""
    for stream in scene.look.streams.values():
        if stream.full == "disk_full":
            message = f"Stream '{stream.name}' rejects events because the disk is full"
            advice = "Free disk space, or lower the retention of the largest streams."
            yield _of_stream(stream, "error", "stream_full", message, advice)
        elif stream.full is not None:
            slowest = max(stream.readers, key=lambda reader: reader.lag_events, default=None)
            who = (slowest.key or slowest.reader) if slowest and slowest.lag_events else None
            message = f"Stream '{stream.name}' is full, and its producers are blocked"
            advice = (
                f"Check {who}, which is {plural(slowest.lag_events if slowest else 0, 'event')} behind; "
                if who
                else "Start a reader; "
            )
            advice += (
                "or raise the limits of the stream, or allow it to drop events (`buffer: {mode: drop}`)."
            )
            yield _of_stream(stream, "warning", "backpressure", message, advice)


def backing_off(scene: Scene) -> Iterator[Attention]:
    """A flow has failed, and is retried."""
    for flow in scene.look.flows.values():
        tried = flow.phase == "backing_off" or flow.failed_attempts
        if flow.status == "active" and tried and flow.phase != "stalled":
            message = f"{_title(flow)} failed and is being retried{_why(flow)}"
            advice = _fix(flow, "it continues automatically")
            yield _of(flow, "warning", "backing_off", message, advice, _erred(flow))


def source_unreachable(scene: Scene) -> Iterator[Attention]:
    """The system of a connected source has become unreachable; the flow continues with the events it has."""
    for flow in scene.look.flows.values():
        if flow.status == "active" and flow.reconnecting:
            message = f"The source of {_title(flow, low=True)} can't be reached{_why(flow)}"
            advice = "Check the source system. Penstock reconnects automatically, and no events are lost."
            yield _of(flow, "warning", "source_unreachable", message, advice, _erred(flow))


def sink_behind(scene: Scene) -> Iterator[Attention]:
    """A sink has missed batches."""
    for flow in scene.look.flows.values():
        for sink in flow.sinks:
            if sink.state == "behind":
                message = f"Sink '{sink.id}' of {_title(flow, low=True)} is behind: it has missed batches"
                cause = f"Fix the cause (`penstock sinks {_name(flow)}` shows it)"
                advice = f"{cause}; {_catch_up(flow, sink.id)}."
                yield _of(flow, "warning", "sink_behind", message, advice)
            elif sink.state == "catching_up":
                message = f"Sink '{sink.id}' of {_title(flow, low=True)} is catching up with missed batches"
                yield _of(flow, "info", "sink_behind", message, "No action needed.")


def sink_failing(scene: Scene) -> Iterator[Attention]:
    """A sink rejects the current batch of a running flow; failed flows are a separate finding."""
    for flow in scene.look.flows.values():
        for sink in flow.sinks:
            if sink.state == "failing" and (flow.status, flow.phase) == ("active", "running"):
                times = plural(sink.failures, "failure")
                message = f"Sink '{sink.id}' of {_title(flow, low=True)} rejects its batch: {times}"
                advice = f"See the error: `penstock sinks {_name(flow)}`. The sink is retried automatically."
                yield _of(flow, "warning", "sink_failing", message, advice)


def lag_growing(scene: Scene) -> Iterator[Attention]:
    """A flow is slower than its input."""
    for key, since in scene.look.lately.growing.items():
        flow = scene.look.flows.get(key)
        if flow is not None and flow.status == "active" and flow.worker is not None:
            waiting = plural(flow.lag_events or 0, "event")
            message = f"{_title(flow)} is falling behind: {waiting} waiting and growing"
            advice = "Open it and find the slowest step or sink"
            advice += "." if flow.latency else "; or raise `batch.max_events`."
            yield _of(flow, "warning", "lag_growing", message, advice, _moment(since))


def latency_missed(scene: Scene) -> Iterator[Attention]:
    """A flow misses its latency goal."""
    for flow in scene.look.flows.values():
        goal = flow.latency or {}
        since = goal.get("missed_since")
        if flow.status != "active" or since is None or scene.look.at.timestamp() - since < MISSED_S:
            continue
        title = f"{_title(flow)} misses its latency goal of {goal['target_ms']:,} ms"
        message = f"{title} (now {goal['p99_ms']:,.0f} ms): {goal['reason']}"
        severity: Severity = "info" if goal["cause"] == "backlog" else "warning"
        yield _of(flow, severity, "latency_missed", message, LATENCY_ADVICE[goal["cause"]], _moment(since))


LATENCY_ADVICE = {
    "fixed_cost": "Raise the goal, such as `latency: 1s`; or find the slowest step or sink, and move a slow "
    "sink to a separate pipeline.",
    "rate": "Raise the goal to allow larger micro-batches; or find the slowest step or sink; or give Spark "
    "more cores.",
    "backlog": "No action needed: the goal is met again when the backlog is processed.",
    "stuck": "Open it and check its sinks and log: a sink or step may be waiting for another system.",
    "uneven": "Check for other load on the machine and for a sink that is sometimes slow; or raise the goal.",
}
"""Advice for a missed latency goal, by cause."""


def dead_letters(scene: Scene) -> Iterator[Attention]:
    """A flow failed to process events in the last minutes."""
    for key, (letters, since) in scene.look.lately.letters.items():
        if (flow := scene.look.flows.get(key)) is not None:
            message = f"{_title(flow)} could not process {plural(letters, 'event')} {LATELY}"
            advice = "Open its dead letters, fix the step, and replay them"
            advice += f": `penstock dead-letters ls {_name(flow)}`."
            yield _of(flow, "warning", "dead_letters", message, advice, _moment(since))


def stream_dropping(scene: Scene) -> Iterator[Attention]:
    """A stream has dropped events before a reader read them."""
    for key, (events, since) in scene.look.lately.lost.items():
        if (stream := scene.look.streams.get(key)) is not None:
            message = f"Stream '{stream.name}' dropped {plural(events, 'event')} {LATELY}"
            advice = "Open it to see why. To keep events, use faster readers, higher limits or "
            advice += "`buffer: {mode: block}`"
            advice += "." if _pipeline_of(stream) else ", a longer retention or `wal: {on_full: block}`."
            yield _of_stream(stream, "warning", "stream_dropping", message, advice, _moment(since))


def unended_transactions(scene: Scene) -> Iterator[Attention]:
    """Events were processed without the rest of their transaction."""
    for key, (transactions, since) in scene.look.lately.unended.items():
        if (stream := scene.look.streams.get(key)) is not None:
            message = (
                f"{plural(transactions, 'transaction')} of stream '{stream.name}' did not complete in time: "
            )
            message += "their events were processed without the rest"
            advice = "Check for a producer that stopped within a transaction, or raise max_tx_ms under "
            advice += "batch in the pipelines that read this stream."
            yield _of_stream(stream, "warning", "transaction_unended", message, advice, _moment(since))


def lost_by_restart(scene: Scene) -> Iterator[Attention]:
    """Events that were in memory were lost in a restart."""
    for key, (events, since) in scene.look.lately.restart.items():
        if (stream := scene.look.streams.get(key)) is not None:
            message = f"Stream '{stream.name}' lost {plural(events, 'event')}: they were only in memory, "
            message += "and Penstock restarted"
            advice = "Set `wal: {enabled: true}` if events of this stream must survive a restart."
            if pipeline := _pipeline_of(stream):
                advice = (
                    f"Send them again, and set `buffer: {{type: wal}}` in pipeline '{pipeline}' to keep "
                    "events on disk."
                )
            yield _of_stream(stream, "error", "lost_restart", message, advice, _moment(since))


def resting(scene: Scene) -> Iterator[Attention]:
    """A paused or stopped flow has an error."""
    for flow in scene.look.flows.values():
        if flow.status not in ("paused", "stopped") or not (error := _current(flow)):
            continue
        verb = "resume" if flow.status == "paused" else "start"
        then = f"then {verb} it: `penstock {verb} {_name(flow)}`"
        if error.get("problems"):
            message = f"{_title(flow)} is {flow.status} and not valid{_why(flow)}"
            advice = f"Open it and fix the highlighted errors; {then}."
            yield _of(flow, "info", "invalid", message, advice, _erred(flow))
        else:
            message = f"{_title(flow)} is {flow.status} after a failure{_why(flow)}"
            yield _of(flow, "info", "paused_with_error", message, _fix(flow, then), _erred(flow))


RULES: tuple[Rule, ...] = (
    stalled,
    no_worker,
    worker_stuck,
    disk,
    failed,
    unplaced,
    stream_full,
    backing_off,
    source_unreachable,
    worker_gone,
    sink_behind,
    sink_failing,
    lag_growing,
    latency_missed,
    dead_letters,
    stream_dropping,
    unended_transactions,
    lost_by_restart,
    resting,
)
"""The order of findings of the same severity."""


def _of(
    flow: FlowPulse, severity: Severity, code: str, message: str, advice: str, since: datetime | None = None
) -> Attention:
    return Attention(severity, code, message, advice, flow.key, flow.kind, flow.id, flow.name, since)


def _erred(flow: FlowPulse) -> datetime | None:
    """The time of a flow's last error."""
    at = (_current(flow) or {}).get("at")
    return _moment(at) if isinstance(at, int | float) else None


def _of_stream(
    stream: StreamPulse,
    severity: Severity,
    code: str,
    message: str,
    advice: str,
    since: datetime | None = None,
) -> Attention:
    return Attention(severity, code, message, advice, stream.key, "Stream", stream.id, stream.name, since)


def _pipeline_of(stream: StreamPulse) -> str | None:
    """The id of the pipeline if the stream is a pipeline's input."""
    return stream.id.removesuffix(INPUT) if stream.id.endswith(INPUT) else None


def _title(flow: FlowPulse, low: bool = False) -> str:
    return f"{flow.kind.lower() if low else flow.kind} '{flow.name}'"


def _name(flow: FlowPulse) -> str:
    """The name of a flow as an argument of commands."""
    return flow.id if flow.kind == "Pipeline" else f"{flow.kind.lower()}/{flow.id}"


def _why(flow: FlowPulse) -> str:
    message = str((_current(flow) or {}).get("message") or "").strip()
    return f": {message}" if message else ""


def _current(flow: FlowPulse) -> JsonObject | None:
    """The error of a flow, unless it has processed a batch since."""
    return None if (flow.error or {}).get("recovered") else flow.error


def _duration(seconds: int) -> str:
    return plural(seconds // 60, "minute") if seconds >= 120 else plural(seconds, "second")


def _catch_up(flow: FlowPulse, sink: str) -> str:
    """The hint on how to let a sink catch up, by the status of its flow."""
    verb = {"paused": "resume", "stopped": "start", "failed": "start"}.get(flow.status)
    if verb is not None:
        return f"then {verb} it: `penstock {verb} {_name(flow)}`, and the sink catches up automatically"
    return f"then run `penstock catch-up {_name(flow)} {sink}`"


def _fix(flow: FlowPulse, then: str) -> str:
    hint = str((_current(flow) or {}).get("hint") or "").strip().rstrip(".")
    hint = hint or "open it, check the error and the log, and fix the cause"
    return f"{hint[0].upper()}{hint[1:]}; {then}."


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
