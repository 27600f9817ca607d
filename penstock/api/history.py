"""Metrics over time, for charts."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.api.errors import failures
from penstock.api.ingest import StreamName
from penstock.api.kinds import KINDS, Kind
from penstock.api.params import Moment, Name
from penstock.api.views import View
from penstock.control.documents.flow_states import flow_of
from penstock.control.documents.service import Service
from penstock.control.graph.layout import key_of
from penstock.control.monitor.history import FINE_MINUTES, MOST_MINUTES
from penstock.control.monitor.pulse import TOTALS, Pulse
from penstock.errors import Invalid, Problem

_DESCRIPTION = """\
Every two seconds for the last 15 minutes, every minute for up to a day; kept over restarts of the server. The
last `minutes`, or with `from` the time from there to `to`. {}"""

_ALL = "Series `in_rate`, `out_rate`, `lag_events`, `dead_letters` (per second), `stream_bytes`."
_FLOW = """\
Series `in_rate`, `out_rate`, `batch_ms`, `latency_ms`, `lag_events`, `lag_ms`, `dead_letters` (per second),
and `sink:ID` (events per second) for each sink."""
_STREAM = """\
Series `in_rate`, `bytes`, `segments`, `events`, `lag_events`, `dropped` (per second), and `drop:REASON`."""

Minutes = Annotated[int, Query(ge=1, le=MOST_MINUTES, description="Time range: the last minutes.")]
From = Annotated[
    Moment | None, Query(alias="from", description="Start of the time range, ISO 8601 with time zone.")
]
To = Annotated[Moment | None, Query(alias="to", description="End of the time range. Default: now.")]


class History(View):
    """Metrics by column: `at` has the times, and each series a value for each time."""

    step_ms: int
    at: list[int] = Field(description="Milliseconds since 1970.")
    series: dict[str, list[float | None]] = Field(description="Null where a value is unknown.")


def history_routes(service: Service, pulse: Pulse) -> APIRouter:
    """The routes for the history of the totals, of each flow and of each stream."""
    router = APIRouter()

    @router.get(
        "/history",
        tags=["overview"],
        summary="Get total metrics over time",
        description=_DESCRIPTION.format(_ALL),
        operation_id="getHistory",
        responses=failures(422),
    )
    def totals(minutes: Minutes = FINE_MINUTES, since: From = None, until: To = None) -> History:
        return _history(pulse, TOTALS, minutes, since, until)

    @router.get(
        "/streams/{name}/history",
        tags=["streams"],
        summary="Get metrics of a stream over time",
        description=_DESCRIPTION.format(_STREAM),
        operation_id="getStreamHistory",
        responses=failures(404, 422),
    )
    def stream(
        name: StreamName, minutes: Minutes = FINE_MINUTES, since: From = None, until: To = None
    ) -> History:
        key = key_of("Stream", service.streams.place(name).id)
        return _history(pulse, key, minutes, since, until)

    def add(kind: Kind) -> None:
        @router.get(
            f"/{kind.place}/{{name}}/history",
            tags=[kind.place],
            summary=f"Get metrics of {kind.one} over time",
            description=_DESCRIPTION.format(_FLOW),
            operation_id=f"get{kind.name}History",
            responses=failures(404, 409, 422),
        )
        def flow(
            name: Name, minutes: Minutes = FINE_MINUTES, since: From = None, until: To = None
        ) -> History:
            found = flow_of(service.registry.get(kind.name, name))
            return _history(pulse, key_of(kind.name, found.id), minutes, since, until)

    for kind in KINDS:
        if kind.runs:
            add(kind)
    return router


def _history(pulse: Pulse, key: str, minutes: int, since: datetime | None, until: datetime | None) -> History:
    if since is None and until is not None:
        message = "'to' needs 'from'"
        raise Invalid(Problem(code="incomplete_range", message=message, path="to", hint="set 'from'"))
    if since is None:
        return History.model_validate(vars(pulse.history.read(key, minutes)))
    end = until or datetime.now(UTC)
    if end <= since:
        message, hint = "the time range ends before it begins", "set 'to' to a later time than 'from'"
        raise Invalid(Problem(code="empty_range", message=message, path="to", hint=hint))
    found = pulse.history.between(key, int(since.timestamp() * 1000), int(end.timestamp() * 1000))
    return History.model_validate(vars(found))
