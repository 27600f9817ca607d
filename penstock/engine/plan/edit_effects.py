"""The effects of an edit on a flow, computed before it is saved.

Each part of the flow keeps its state, restarts from the checkpoint, or is reset: a reset means that the new
flow cannot use the checkpoint, and that the state of the part is lost unless events are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.engine.plan.flow import Flow, Part
from penstock.engine.plan.plan import plan_flow
from penstock.engine.runtime.checkpoints import Memory, memory_of, state_of
from penstock.frames.logs import LOGS
from penstock.frames.streams.cursors import cursor_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Effect = Literal["keeps", "restarts", "resets"]
PartKind = Literal["source", "processor", "sink", "policy"]

SAME, CHANGED = "no change", "the change takes effect with the next batch"
ADDED, REMOVED = "added", "removed"
NOT_BEGUN = "no events have been read yet"
IT = "its state"
POLICIES = ("batch", "commit_policy", "restart")


class StepEffect(BaseModel):
    """The effect of an edit on one part of a flow."""

    model_config = ConfigDict(populate_by_name=True, json_schema_serialization_defaults_required=True)

    id: str
    part: PartKind
    effect: Effect = Field(
        description="`keeps` its state and position, `restarts` from the checkpoint, or `resets`: state and "
        "position are lost."
    )
    why: str
    path: str = Field(description="Path in the document.")
    from_: str | None = Field(
        default=None,
        alias="from",
        description="With `resets`: the position from which to read events again to rebuild the state.",
    )


class EditPlan(BaseModel):
    """The effects of an edit on a flow."""

    steps: list[StepEffect]

    @property
    def resets(self) -> bool:
        """Whether the edit loses state or progress."""
        return any(step.effect == "resets" for step in self.steps)


def plan_edit(
    old: Flow, new: Flow, spark: SparkSession | None = None, checkpoints: Collection[str] | None = None
) -> EditPlan:
    """The effects of an edit that replaces the flow `old` with `new`.

    Without `spark` the types of the steps' state are not compared. `checkpoints` are the keys of the flow's
    checkpoints: if there are none, nothing can be lost; None means unknown, and counts as the checkpoint of
    the old flow.
    """
    before, after = _memory_of(old, spark), _memory_of(new, spark)
    known = {before.key} if checkpoints is None else set(checkpoints)
    back = after.key in known or (before.position == after.position and before.same_state(after))
    change = _Change(old, new, before, after, begun=bool(known), back=back)
    return EditPlan(steps=list(change.steps()))


def same_steps(old: Flow, new: Flow) -> bool:
    """Whether two flows have the same source and processors, and therefore the same state."""
    return _steps(old) == _steps(new)


def _steps(flow: Flow) -> list[tuple[Any, ...]]:
    parts: list[Part[Any]] = [flow.source, *flow.processors]
    return [(part.id, part.component, part.when) for part in parts]


def _memory_of(flow: Flow, spark: SparkSession | None) -> Memory:
    return memory_of(flow, None if spark is None else lambda: plan_flow(flow, spark.newSession()).output)


@dataclass(frozen=True)
class _Change:
    old: Flow
    new: Flow
    before: Memory
    after: Memory
    begun: bool
    """Whether the flow has any checkpoint."""
    back: bool
    """Whether the flow has a checkpoint from which the new flow can resume."""

    @property
    def fresh(self) -> bool:
        """Whether the new flow needs another checkpoint."""
        return self.begun and not self.back

    @property
    def moved(self) -> bool:
        """Whether offsets of the two flows have different meanings."""
        return self.before.position != self.after.position

    def steps(self) -> Iterator[StepEffect]:
        yield self.source()
        yield from self.processors()
        yield from self.sinks()
        for name in POLICIES:
            changed = getattr(self.old, name) != getattr(self.new, name)
            effect: Effect = "restarts" if changed else "keeps"
            why = CHANGED if changed else SAME
            paced = name == "batch" and self.new.latency_ms is not None
            path = "spec.latency" if paced else f"spec.{name}"
            yield StepEffect(id=name, part="policy", effect=effect, why=why, path=path)

    def source(self) -> StepEffect:
        part, kind = self.new.source, self.new.source.component.type  # type: ignore[attr-defined]
        if self.moved and self.begun:
            if self.back:
                return _effect(
                    part, "source", "restarts", "reading continues at the last position in this source"
                )
            why = "offsets of the old source don't apply to the new one: it is read from its start position"
            return _effect(part, "source", "resets", why, _beginning(self.new))
        if self.fresh:
            place = self.new.source.component.reads(self.new.site)
            if place is None:
                why = f"a new checkpoint is needed: a source of type '{kind}' is then read from the beginning"
                return _effect(part, "source", "resets", why, "earliest")
            why = (
                "a new checkpoint is needed; reading continues at the current position, "
                f"{_beginning(self.new)}"
            )
            return _effect(part, "source", "restarts", why)
        return _compared(self.old.source, part, "source")

    def processors(self) -> Iterator[StepEffect]:
        old = {part.id: part for part in self.old.processors}
        places = zip(_shared(self.old, self.new), _shared(self.new, self.old), strict=True)
        moved = {now for was, now in places if was != now}
        for part in self.new.processors:
            yield self.processor(old.pop(part.id, None), part, moved=part.id in moved)
        for part in old.values():
            if part.component.stateful and self.fresh:
                yield _effect(
                    part, "processor", "resets", f"{REMOVED}, together with {IT}", self.rebuilt_from
                )
            else:
                yield _effect(part, "processor", "restarts", REMOVED)

    def processor(self, known: Part[Any] | None, part: Part[Any], *, moved: bool) -> StepEffect:
        remembered = known is not None and known.component.stateful
        if known is not None and remembered and self.fresh:
            return _effect(part, "processor", "resets", self.why(known, part), self.rebuilt_from)
        if part.component.stateful and not remembered:
            why = "starts with empty state"
            return _effect(part, "processor", "restarts", why if self.begun else NOT_BEGUN)
        if known is not None and moved and part.component == known.component:
            return _effect(part, "processor", "restarts", "moved to another position")
        return _compared(known, part, "processor")

    def why(self, known: Part[Any], part: Part[Any]) -> str:
        """The reason why a step cannot keep its state."""
        if self.moved:
            return f"{IT} belongs to the old source"
        if not part.component.stateful:
            return f"the step no longer keeps state: {IT} is lost"
        was, now = state_of(known.component), state_of(part.component)
        changed = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        if changed:
            return f"{IT} depends on {' and '.join(changed)}"
        if self.before.states == self.after.states:
            return "the types of the columns in its state change"
        return "all stateful steps share one checkpoint, and another one changes"

    @property
    def rebuilt_from(self) -> str:
        """The position from which to read again to rebuild the state of the steps."""
        open_ms = sum(part.component.open_ms() for part in self.old.remembering)
        place = self.old.source.component.reads(self.old.site)
        if place is None or not open_ms:
            return "earliest"
        log = LOGS.log(place.directory)
        cursor = cursor_in(log, self.old.site.flow)
        if cursor is None:
            return _beginning(self.old)
        span = next(log.storage.spans(max(cursor.next, log.bounds().first)), None)
        at_us = int(datetime.now(UTC).timestamp() * 1e6) if span is None else span.time_us
        return f"time:{datetime.fromtimestamp(at_us / 1e6 - open_ms / 1000, UTC).isoformat()}"

    def sinks(self) -> Iterator[StepEffect]:
        old = {part.id: part for part in self.old.sinks}
        for part in self.new.sinks:
            yield _compared(old.pop(part.id, None), part, "sink")
        for part in old.values():
            yield _effect(part, "sink", "restarts", REMOVED)


def _shared(flow: Flow, other: Flow) -> list[str]:
    """The ids of a flow's processors that another flow also has, in order."""
    ids = {part.id for part in other.processors}
    return [part.id for part in flow.processors if part.id in ids]


def _beginning(flow: Flow) -> str:
    """The position at which a new checkpoint of a flow begins."""
    place = flow.source.component.reads(flow.site)
    cursor = None if place is None else cursor_in(LOGS.log(place.directory), flow.site.flow)
    if cursor is not None:
        return f"offset:{cursor.next}"
    return str(getattr(flow.source.component, "position", "earliest"))


def _compared(known: Part[Any] | None, part: Part[Any], kind: PartKind) -> StepEffect:
    if known is None:
        return _effect(part, kind, "restarts", ADDED)
    same = [part.component, part.required, part.when, part.effort]
    if same == [known.component, known.required, known.when, known.effort]:
        return _effect(part, kind, "keeps", SAME)
    return _effect(part, kind, "restarts", CHANGED)


def _effect(
    part: Part[Any], kind: PartKind, effect: Effect, why: str, from_: str | None = None
) -> StepEffect:
    return StepEffect(id=part.id, part=kind, effect=effect, why=why, path=part.place.path, from_=from_)
