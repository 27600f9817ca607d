"""The connection test of NATS: checks the servers, the login and the stream."""

from __future__ import annotations

import base64
from concurrent.futures import CancelledError
from typing import Any

from penstock.connectors.nats.client import NatsConnection, NatsEnd, Refusal, covers, unknown_stream
from penstock.connectors.probe import Probe, unreachable
from penstock.errors import PenstockError, Problem, Retryable

SAMPLE, SHOWN = 5, 500
"""Maximum messages of a sample, and maximum characters shown of a value."""

LIMIT_S = 8.0


def probe_nats(end: NatsEnd, *, subject: str | None = None, stream: str | None = None) -> Probe:
    """The result of the connection test. Some stream must capture `subject`, and `stream` must exist."""
    if problems := unreachable(end.servers, "servers"):
        return Probe(problems=problems)
    try:
        nats = NatsConnection(end)
    except PenstockError as error:
        return Probe(problems=error.problems)
    try:
        return nats.call(_found(nats, subject, stream), LIMIT_S)
    except PenstockError as error:
        return Probe(problems=error.problems)
    except (Retryable, Refusal, TimeoutError, CancelledError) as error:
        message = str(error) or "JetStream is not responding"
        hint = "check that the user has access to the JetStream API"
        return Probe(problems=[Problem(code="nats_failed", message=message, path="servers", hint=hint)])
    finally:
        nats.close()


async def _found(nats: NatsConnection, subject: str | None, stream: str | None) -> Probe:
    streams = await nats.streams()
    configs = [each["config"] for each in streams]
    names = [config["name"] for config in configs]
    problems: list[Problem] = []
    if stream is not None and stream not in names:
        problems.append(unknown_stream(f"there is no stream '{stream}'", "jetstream", names))
    elif subject is not None:
        within = [config for config in configs if stream is None or config["name"] == stream]
        if not any(covers(each, subject) for config in within for each in config.get("subjects") or ()):
            message = f"no stream captures the subject '{subject}'"
            problems.append(unknown_stream(message, "subject", names))
    subjects = sorted({each for config in configs for each in config.get("subjects") or ()})
    offers = {"streams": names, "subjects": subjects}
    state: dict[str, Any] = next((each["state"] for each in streams if each["config"]["name"] == stream), {})
    sample = await _sample(nats, stream, state) if stream is not None and state else []
    return Probe(problems=problems, offers=offers, sample=sample)


async def _sample(nats: NatsConnection, stream: str, state: dict[str, Any]) -> list[dict[str, Any]]:
    """The last messages of a stream."""
    found = []
    for sequence in range(max(state["first_seq"], state["last_seq"] - SAMPLE + 1), state["last_seq"] + 1):
        try:
            message = (await nats.ask(f"STREAM.MSG.GET.{stream}", seq=sequence))["message"]
        except Refusal:  # it was removed
            continue
        value = base64.b64decode(message.get("data") or "").decode(errors="replace")[:SHOWN]
        found.append({"subject": message["subject"], "sequence": message["seq"], "value": value})
    return found
