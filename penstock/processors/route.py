"""The `route` step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from penstock.errors import Invalid, Problem, did_you_mean
from penstock.frames.hidden import EVENT, NOTE, visible
from penstock.frames.noting import noted, shown
from penstock.processors.base import FrameProcessor, Stage
from penstock.specs.base import Spec
from penstock.sql.frames import condition
from penstock.sql.names import quote
from penstock.sql.tries import tried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

JUDGED, SINKS = "$judged", "$sinks"


class Rule(Spec):
    """A condition, and the sinks for matching events."""

    when: str = Field(min_length=1, description="A condition in Spark SQL over the event's columns.")
    sinks: list[str] = Field(min_length=1, description="Ids of the sinks for matching events.")


class RouteProcessor(FrameProcessor):
    """Chooses the sinks of each event by conditions.

    The first rule whose condition is true applies, or with `match: all` all such rules. `default` applies to
    an event that matches no rule. Later steps still process all events; a later `route` overrides the choice.
    An event on which a condition fails, for example with a division by zero, goes to the dead letters.
    """

    example: ClassVar[str] = """\
type: route
rules:
  - {when: amount >= 1000, sinks: [audit, lake]}
  - {when: country = 'DE', sinks: [lake]}
default: drop
"""

    type: Literal["route"] = "route"
    rules: list[Rule] = Field(min_length=1, description="Conditions with their sinks, in order.")
    match: Literal["first", "all"] = Field(
        default="first",
        description="Whether the first matching rule decides, or all matching rules together.",
    )
    default: Literal["all", "drop", "dead_letter"] | list[str] = Field(
        default="dead_letter",
        description="Events that match no rule: deliver to all sinks, drop, send to the dead letters, or "
        "deliver to a list of sinks.",
    )

    routes: ClassVar[bool] = True

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events with their sinks."""
        from pyspark.sql import functions as f

        problems = list(self._unknown(stage.sinks))
        conditions = []
        for i, rule in enumerate(self.rules):
            try:
                conditions.append(condition(shown(df), rule.when, field=f"rules[{i}].when"))
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        judged = df.withColumn(JUDGED, tried(df, *(c.alias(str(i)) for i, c in enumerate(conditions))))
        found = judged.withColumn(SINKS, self._found())
        failed, unmatched = f.col(quote(JUDGED)).isNull(), f.col(quote(SINKS)).isNull()
        if self.default == "drop":
            found = found.filter(failed | ~unmatched)
        message = f.lit("a condition failed on this event")
        note = f.when(failed, noted(df, stage.step, "condition_failed", message))
        if self.default == "dead_letter":
            message = f.lit("no rule matches this event")
            note = note.when(unmatched, noted(df, stage.step, "no_route", message))
        sinks = f.col(quote(SINKS))
        if isinstance(self.default, list):
            sinks = f.coalesce(sinks, _ids(self.default))
        event = f.col(quote(EVENT)).withField("sinks", sinks)
        columns = [f.col(quote(name)) for name in visible(df.columns)]
        return found.select(*columns, event.alias(EVENT), note.alias(NOTE))

    def _found(self) -> Column:
        """The sinks according to the rules; null if no rule matches."""
        from pyspark.sql import functions as f

        chosen = [f.when(f.col(quote(JUDGED, str(i))), _ids(rule.sinks)) for i, rule in enumerate(self.rules)]
        if self.match == "first":
            return f.coalesce(*chosen)
        together = f.array_distinct(f.flatten(f.array_compact(f.array(*chosen))))
        return f.when(f.size(together) > 0, together)

    def _unknown(self, sinks: tuple[str, ...]) -> Iterator[Problem]:
        """A problem for each unknown sink id."""
        places = {f"rules[{i}].sinks": rule.sinks for i, rule in enumerate(self.rules)}
        if isinstance(self.default, list):
            places["default"] = self.default
        for path, ids in places.items():
            for i, sink in enumerate(ids):
                if sink not in sinks:
                    yield Problem(
                        code="unknown_sink",
                        message=f"there is no sink '{sink}'",
                        path=f"{path}[{i}]",
                        hint=did_you_mean(sink, sinks),
                    )


def _ids(ids: list[str]) -> Column:
    from pyspark.sql import functions as f

    return f.array(*map(f.lit, ids))
