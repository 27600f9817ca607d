"""The connection tests of HTTP connectors: check the response and the login, and show sample items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.connectors.http.exchange import Answer, exchange
from penstock.connectors.http.statuses import BY_ADDRESS, SETTINGS, setting
from penstock.connectors.probe import Probe
from penstock.errors import Backpressure, PenstockError, Problem
from penstock.frames.http.answers import shown
from penstock.frames.http.clients import client_of
from penstock.policy import Policy
from penstock.specs.templates import columns_of, filled, parts_of

if TYPE_CHECKING:
    from penstock.connectors.http.poll import HttpPollSource
    from penstock.connectors.http.sink import HttpSink

PATIENCE_S = 5.0
"""Maximum seconds to wait for the service: the test has to finish within seconds."""

SAMPLE = 5
"""Maximum number of items in the sample."""

NO_OPTIONS = 501
"""The status of a service that doesn't support the method OPTIONS."""


def probe_sink(sink: HttpSink, policy: Policy) -> Probe:
    """The result of the connection test of an `http` sink: one OPTIONS request, which changes nothing."""
    known, whole = _known_part(sink.url)
    if not known.partition("://")[2].partition("/")[1]:  # the host is a column
        return Probe(checked=False)
    timeout_s = min(PATIENCE_S, sink.timeout_ms / 1000)
    fixed = {name: filled(text, {}) for name, text in sink.headers.items() if name not in sink.by_event}
    try:
        with client_of(policy, sink.auth, sink.tls, timeout_s, 1) as client:
            answer = exchange(client, "OPTIONS", known, fixed, None, timeout_s)
    except PenstockError as error:
        return Probe(problems=error.problems)
    allowed = [name.strip().upper() for name in answer.headers.get("Allow", "").split(",") if name.strip()]
    problem = _problem(answer, shown(known), whole=whole)
    if problem is None and whole and allowed and sink.method not in allowed:
        message = f"{shown(known)} accepts {', '.join(allowed)} here"
        problem = Problem(
            code="http_method", message=message, path="method", hint="check 'method' and the URL"
        )
    offers = {"methods": allowed} if allowed and whole else {}
    return Probe(problems=[problem] if problem is not None else [], offers=offers)


def _known_part(template: str) -> tuple[str, bool]:
    """The URL up to the path segment with the first column, and whether that is the whole URL."""
    if not list(columns_of(template)):
        url = filled(template, {})
        return (url if url.count("/") > 2 else f"{url}/"), True
    text, _ = next(parts_of(template))
    return text.partition("?")[0].rpartition("/")[0] + "/", False


def _problem(answer: Answer, where: str, *, whole: bool) -> Problem | None:
    status = answer.status
    if status >= 500 and status != NO_OPTIONS:
        message, hint = f"{where} responded with {status}", "see the log of the service"
        return Problem(code="http_failed", message=message, path="url", hint=hint)
    # A service may not support OPTIONS (405), and its response to a partial URL proves nothing.
    if status not in SETTINGS or status in (405, 415) or (status in BY_ADDRESS and not whole):
        return None
    return setting(answer, where)


def probe_poll(source: HttpPollSource, policy: Policy) -> Probe:
    """The result of the connection test of an `http_poll` source, with items of its first page."""
    from penstock.connectors.http.poller import Poller

    timeout_ms = min(int(PATIENCE_S * 1000), source.timeout_ms)
    poller = Poller(source.model_copy(update={"timeout_ms": timeout_ms}), policy)
    try:
        items = poller.sample()
    except PenstockError as error:
        return Probe(problems=error.problems)
    except Backpressure as error:
        hint = f"the service asks to wait {error.retry_after:g} s"
        return Probe(problems=[Problem(code="http_busy", message=str(error), path="url", hint=hint)])
    finally:
        poller.close()
    shown_items = [json.loads(item) for item in items[:SAMPLE]]
    rows = [item if isinstance(item, dict) else {"value": item} for item in shown_items]
    return Probe(offers={"fields": list(dict.fromkeys(name for row in rows for name in row))}, sample=rows)
