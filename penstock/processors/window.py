"""The `window` step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT, NOTE, TIME, visible
from penstock.frames.known import event_from, event_of
from penstock.frames.logs import place_of
from penstock.frames.noting import noted, shown
from penstock.processors.base import FrameProcessor, Stage
from penstock.processors.support.event_time import (
    SYSTEM,
    TIME_FIELD,
    end_marks,
    passed_by,
    time_column,
    timed,
)
from penstock.processors.support.keys import key_columns
from penstock.specs.conditions import only_with, unmet
from penstock.specs.durations import DurationText, SpanText, parse_duration
from penstock.sql.frames import aggregate, aggregated
from penstock.sql.names import case_sensitive, quote, same
from penstock.sql.tries import tried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

START, END = "window_start", "window_end"
WINDOW, MADE, ALL = "$window", "$made", "$all"


class WindowProcessor(FrameProcessor):
    """Groups events into time windows and computes aggregates of each.

    - `tumbling`: windows of `size`, one after the other.
    - `hopping`, also called `sliding`: windows of `size` that begin every `slide`, so an event is in several.
    - `session`: as long as no more than `gap` lies between two events.

    Windows are counted from 1970-01-01T00:00Z, moved by `offset`. Each combination of `keys` has its own. The
    result has `window_start`, `window_end`, the keys, and what `aggregates` say; with `emit: events` it is
    the events themselves with these two columns before them, in the order of time, and a step in JavaScript
    or Python that follows gets all events of a window as one batch. The key of an event that a window makes
    is the value of `keys`, if that is one column.

    A window is closed for an event if one that was read before it is later than the end of the window by
    `allowed_lateness` or more. An event counts in those of its windows that are not closed; if all of them
    are, it is late: it is counted, and kept in the stream `late`, if that is named. A session is closed for
    an event if one that was read before it is later by `gap` and `allowed_lateness` or more. This is decided
    event by event, so neither the clock nor how events are cut into batches has a part in it: a test run, a
    backlog and live data give the same windows.

    A window goes on once the latest event is past its end by `allowed_lateness`, a session by `gap` more, and
    all of them at the end of a finite input. Windows of system time are closed by the clock too, within a few
    seconds. An event without a time goes to the dead letters.

    The time of a window may be the `window_end` of one before it, also under another name. It counts in the
    window that it ends in: 22:11:00 is the end of something in the window from 22:10 to 22:11.
    """

    example: ClassVar[str] = """\
type: window
kind: tumbling
time: at
size: 1m
allowed_lateness: 10s
keys: [country]
aggregates:
  orders: count(*)
  revenue: sum(amount)
"""

    type: Literal["window"] = "window"
    kind: Literal["tumbling", "hopping", "sliding", "session"] = Field(
        default="tumbling", description="Kind of window; `sliding` is the same as `hopping`."
    )
    time: str = Field(default=SYSTEM, min_length=1, description=TIME_FIELD)
    size: SpanText | None = Field(
        default=None,
        description="Window size, such as 10s, 5m or 1h.",
        json_schema_extra=only_with(kind=["tumbling", "hopping", "sliding"]),
    )
    slide: SpanText | None = Field(
        default=None,
        description="Interval between window starts; at most `size`.",
        json_schema_extra=only_with(kind=["hopping", "sliding"]),
    )
    gap: SpanText | None = Field(
        default=None,
        description="Gap that closes a session.",
        json_schema_extra=only_with(kind=["session"]),
    )
    offset: DurationText = Field(
        default="0s",
        description="Shift of the window starts, such as 6h for days that start at 6:00.",
        json_schema_extra=only_with(kind=["tumbling", "hopping", "sliding"]),
    )
    allowed_lateness: DurationText = Field(
        default="0s", description="How long a window waits for late events."
    )
    keys: list[str] = Field(
        default_factory=list, description="Grouping columns: each combination of values has its own windows."
    )
    aggregates: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="Column name → aggregate in Spark SQL, such as `count(*)`.",
        json_schema_extra=only_with(emit=["aggregates"]),
    )
    emit: Literal["aggregates", "events"] = Field(
        default="aggregates", description="Output of a window: its aggregates, or its events."
    )
    late: str | None = Field(
        default=None,
        min_length=1,
        description="Id of a Stream without a schema for late events, as JSON.",
    )

    stateful: ClassVar[bool] = True
    folds: ClassVar[bool] = True

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        for name in ("size", "slide", "gap"):
            wanted = unmet(self, name) is None
            if (getattr(self, name) is not None) != wanted:
                raise ValueError(f"a {self.kind} window {'needs' if wanted else 'has no'} '{name}'")
        if "offset" in self.model_fields_set and unmet(self, "offset") is not None:
            raise ValueError(f"a {self.kind} window has no 'offset'")
        if self.slide is not None and self._slide_ms > self._size_ms:
            raise ValueError("'slide' is longer than 'size': some events would be in no window")
        if (self.aggregates is None) != (self.emit == "events"):
            raise ValueError("a window needs either 'aggregates' or 'emit: events'")
        return self

    @property
    def _size_ms(self) -> int:
        return parse_duration(self.size or self.gap or "0s")

    @property
    def _slide_ms(self) -> int:
        return parse_duration(self.slide or self.size or "0s")

    @property
    def _offset_ms(self) -> int:
        return parse_duration(self.offset) % (self._slide_ms or 1)

    def delay_ms(self) -> int:
        # What is not late must never find its session closed by Spark, of whatever gap it is the end.
        return parse_duration(self.allowed_lateness) + (self._size_ms if self.kind == "session" else 0)

    def open_ms(self) -> int:
        return self._size_ms + self.delay_ms()

    def state_of(self) -> dict[str, Any]:
        fields = ("kind", "time", "size", "slide", "gap", "offset", "keys", "aggregates", "emit")
        return {name: getattr(self, name) for name in fields}

    def sift(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that have a time."""
        from pyspark.sql import functions as f

        if self.time == SYSTEM:  # every event has one
            return df
        note = noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL"))
        return df.withColumn(NOTE, f.when(time_column(df, self.time).isNull(), note))

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that are not late, and that all aggregates can be computed of."""
        from pyspark.sql import functions as f

        self._check_late(stage)
        made = timed(df, stage, self.time, divided=self._divided)
        df = made.drop(WINDOW)
        message = f.lit("the windows of this event are closed")
        # An event that is only counted is not carried along.
        late = noted(
            df, stage.step, "late", message, kind="late", with_row=self.late is not None or stage.testing
        )
        # The time is not carried through the shuffle where the window says it all.
        divided = WINDOW in made.columns
        end = f.unix_millis(quote(WINDOW, "end")) if divided else self._last_end(f.col(quote(TIME)))
        note = f.when(self._is_closed(end), late)
        inputs = aggregated(shown(df), list(self._aggregates(df).values())) if self.aggregates else []
        if inputs:
            made = made.withColumn(MADE, tried(df, *(c.alias(str(i)) for i, c in enumerate(inputs))))
            message = f.lit("an aggregate can't be computed for this event")
            failed = noted(df, stage.step, "aggregate_failed", message)
            note = f.when(f.col(quote(MADE)).isNull(), failed).otherwise(note)
        return made.withColumn(NOTE, note).drop(MADE)

    def _divided(self, df: DataFrame) -> tuple[DataFrame, Sequence[str]]:
        """The events by window and keys, as Spark keeps them: it need not shuffle them once more."""
        from pyspark.sql import functions as f

        keys = list(key_columns(df, self.keys))
        if self.kind != "tumbling" or not keys or not set(keys) <= set(df.columns):
            return df, ()
        # Spark would look once more for events without a time, to drop them.
        time = f.coalesce(f.col(quote(TIME)), f.timestamp_seconds(f.lit(0)))
        window = self._window(time).alias(WINDOW, metadata=df.schema[TIME].metadata)
        return df.withColumn(WINDOW, window), (WINDOW, *keys)

    def _is_closed(self, end: Column) -> Column:
        """Whether what ends at a time, in milliseconds, was closed when an event was read."""
        return passed_by(parse_duration(self.allowed_lateness), end)

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The windows, or their events."""
        from pyspark.sql import functions as f

        known = df.drop(WINDOW)
        keys, aggregates = key_columns(known, self.keys), self._aggregates(known)
        self._check_names(known, [*keys, *aggregates])
        window = f.col(quote(WINDOW)) if WINDOW in df.columns else self._window(f.col(quote(TIME)))
        if self.kind in ("hopping", "sliding"):
            df = df.withColumn(WINDOW, window)
            df = df.filter(~self._is_closed(f.unix_millis(quote(WINDOW, "end"))))
            window = f.col(quote(WINDOW))
        groups = [window.alias(WINDOW), *(column.alias(name) for name, column in keys.items())]
        if self.kind == "session" and not keys:
            # Spark has no sessions without a key, and would see through a constant.
            groups.append(f.unix_micros(quote(TIME)).bitwiseAND(f.lit(0)).alias(ALL))
        columns = visible(known.columns)
        together = _rows(columns) if self.emit == "events" else tried(df, *_numbered(aggregates))
        windows = df.groupBy(*groups).agg(together.alias(MADE))
        bounds = [
            f.col(quote(WINDOW, "start")).alias(START),
            f.col(quote(WINDOW, "end")).alias(END, metadata=end_marks(df)),
        ]
        windows = windows.select(*bounds, *map(f.col, map(quote, keys)), f.col(quote(MADE)))
        if not windows.isStreaming:
            windows = windows.orderBy(START, END, *map(quote, keys))
        if self.emit == "events":
            return _events(windows, stage.step, columns, list(keys))
        return _values(windows, stage.step, list(aggregates), list(keys))

    def _window(self, time: Column) -> Column:
        from pyspark.sql import functions as f

        if self.kind == "session":
            return f.session_window(time, f"{self._size_ms} milliseconds")
        size, slide, offset = self._size_ms, self._slide_ms, self._offset_ms
        return f.window(time, f"{size} milliseconds", f"{slide} milliseconds", f"{offset} milliseconds")

    def _last_end(self, time: Column) -> Column:
        """When the last window of an event ends, in milliseconds."""
        from pyspark.sql import functions as f

        at = f.unix_micros(time)
        if self.kind == "session":
            return f.floor((at + f.lit(self._size_ms * 1000)) / 1000).cast("bigint")
        since = f.pmod(at - f.lit(self._offset_ms * 1000), f.lit(self._slide_ms * 1000))
        return f.unix_millis(f.timestamp_micros(at - since)) + f.lit(self._size_ms)

    def _aggregates(self, df: DataFrame) -> dict[str, Column]:
        made: dict[str, Column] = {}
        problems: list[Problem] = []
        for name, text in (self.aggregates or {}).items():
            try:
                made[name] = aggregate(shown(df), text, field=f"aggregates.{name}")
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        return made

    def _check_late(self, stage: Stage) -> None:
        """Late events have left the flow: whatever their columns, they are kept as JSON."""
        if self.late is None or place_of(stage.site, self.late, field="late").spec.schema_ is None:
            return
        message = f"the stream '{self.late}' has a schema, but late events are stored as JSON"
        raise Invalid(
            Problem(code="typed_stream", message=message, path="late", hint="use a stream without a schema")
        )

    def _check_names(self, df: DataFrame, own: list[str]) -> None:
        sensitive = case_sensitive(df)
        taken: set[str] = set()
        names = visible(df.columns) if self.emit == "events" else own
        for name in (START, END, *names):
            if same(name, sensitive) in taken:
                message = f"a window would have two columns '{name}'"
                hint = "rename one of them in an earlier step"
                raise Invalid(Problem(code="duplicate_column", message=message, hint=hint))
            taken.add(same(name, sensitive))


def _numbered(aggregates: dict[str, Column]) -> list[Column]:
    return [column.alias(str(i)) for i, column in enumerate(aggregates.values())]


def _values(windows: DataFrame, step: str, aggregates: list[str], keys: list[str]) -> DataFrame:
    """The aggregates of each window; one that raises, such as a division by zero, makes a note."""
    from pyspark.sql import functions as f

    made = f.col(quote(MADE))
    event = event_of(key=f.col(quote(keys[0])).cast("string")) if len(keys) == 1 else event_from()
    bounds = [f.col(name) for name in (START, END)]
    kept = windows.select(*bounds, *map(f.col, map(quote, keys)), event.alias(EVENT), made)
    message = f.lit("an aggregate of this window can't be computed")
    note = f.when(made.isNull(), noted(kept.drop(MADE), step, "aggregate_failed", message))
    values = [made.getField(str(i)).alias(name) for i, name in enumerate(aggregates)]
    return kept.select(*bounds, *map(f.col, map(quote, keys)), *values, f.col(quote(EVENT)), note.alias(NOTE))


def _rows(names: list[str]) -> Column:
    """All events of a group."""
    from pyspark.sql import functions as f

    # A function keeps the mark of the watermark from the time: it belongs to `window_end` from here on.
    columns = [f.coalesce(f.col(quote(name))).alias(name) for name in names]
    event = f.col(quote(EVENT))
    order = f.struct(
        f.unix_micros(quote(TIME)).alias("time"),
        event.getField("offset").alias("offset"),
        event.getField("place").alias("place"),
    )
    # Its place says nothing outside of its batch, and a step behind the window has an order of its own.
    event = event.withField("place", f.lit(None).cast("bigint")).withField(
        "latest", f.lit(None).cast("bigint")
    )
    return f.collect_list(
        f.struct(order.alias("order"), f.struct(*columns).alias("row"), event.alias("event"))
    )


def _events(windows: DataFrame, step: str, columns: list[str], keys: list[str]) -> DataFrame:
    """The events of each window, one after the other."""
    from pyspark.sql import functions as f

    window_id = f.concat_ws(
        "/",
        f.lit(step),
        f.unix_millis(START).cast("string"),
        f.unix_millis(END).cast("string"),
        f.to_json(f.array(*(f.col(quote(key)).cast("string") for key in keys))),
    )
    each = windows.select(
        f.col(START),
        f.col(END),
        window_id.alias(ALL),
        f.explode(f.array_sort(quote(MADE), _by_time)).alias(MADE),
    )
    rows = [f.col(quote(MADE, "row", name)).alias(name) for name in columns]
    event = f.col(quote(MADE, "event")).withField("batch", f.col(quote(ALL)))
    return each.select(f.col(START), f.col(END), *rows, event.alias(EVENT))


def _by_time(one: Column, other: Column) -> Column:
    from pyspark.sql import functions as f

    first, second = one.getField("order"), other.getField("order")
    sooner, later = first < second, first > second
    return f.when(sooner, -1).when(later, 1).otherwise(0)
