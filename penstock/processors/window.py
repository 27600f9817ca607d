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
    """Groups events into windows of time.

    - `tumbling`: consecutive windows of `size`.
    - `hopping`, also called `sliding`: windows of `size` that begin every `slide`, so an event is in several.
    - `session`: lasts as long as no more than `gap` lies between two events.

    Windows are aligned to 1970-01-01T00:00Z, shifted by `offset`. Each combination of `keys` has its own
    windows. The output has `window_start`, `window_end`, the keys and the `aggregates`. With `emit: events`,
    the output is the events themselves, in the order of time, with these two columns first; a JavaScript or
    Python step that follows gets all events of a window as one batch. The key of an aggregated event is the
    value of `keys`, if that is one column.

    A window is closed for an event if an event that was read before it is later than the end of the window by
    `allowed_lateness` or more. An event is added to its windows that are not closed. If all of them are
    closed, the event is late: it is counted, and stored in the stream `late`, if that is set. A session is
    closed for an event if an event that was read before it is later by `gap` plus `allowed_lateness` or more.
    This is decided event by event, so neither the clock nor batch boundaries affect the result: a test run, a
    backlog and live data produce the same windows.

    A window is output once the latest event is past its end by `allowed_lateness`, a session by another
    `gap`, and all windows at the end of a finite input. Windows of system time are also closed by the clock,
    within a few seconds. An event without a time goes to the dead letters.

    The `time` of a window can be the `window_end` of an earlier window, also under another name. An end
    counts in the window that it closes: 22:11:00 counts in the window from 22:10 to 22:11.
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
        # An event that is not late must never find its session closed by Spark, whatever gap it ends.
        return parse_duration(self.allowed_lateness) + (self._size_ms if self.kind == "session" else 0)

    def open_ms(self) -> int:
        return self._size_ms + self.delay_ms()

    def state_of(self) -> dict[str, Any]:
        fields = ("kind", "time", "size", "slide", "gap", "offset", "keys", "aggregates", "emit")
        return {name: getattr(self, name) for name in fields}

    def sift(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events with a time."""
        from pyspark.sql import functions as f

        if self.time == SYSTEM:  # every event has a system time
            return df
        note = noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL"))
        return df.withColumn(NOTE, f.when(time_column(df, self.time).isNull(), note))

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that are not late, and for which all aggregates can be computed."""
        from pyspark.sql import functions as f

        self._check_late(stage)
        made = timed(df, stage, self.time, divided=self._divided)
        df = made.drop(WINDOW)
        message = f.lit("the windows of this event are closed")
        # A late event that is only counted is not carried along.
        late = noted(
            df, stage.step, "late", message, kind="late", with_row=self.late is not None or stage.testing
        )
        # The time is not carried through the shuffle if the window is sufficient.
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
        """The events partitioned by window and keys, as Spark needs them, to avoid a second shuffle."""
        from pyspark.sql import functions as f

        keys = list(key_columns(df, self.keys))
        if self.kind != "tumbling" or not keys or not set(keys) <= set(df.columns):
            return df, ()
        # Otherwise Spark would check again for events without a time, to drop them.
        time = f.coalesce(f.col(quote(TIME)), f.timestamp_seconds(f.lit(0)))
        window = self._window(time).alias(WINDOW, metadata=df.schema[TIME].metadata)
        return df.withColumn(WINDOW, window), (WINDOW, *keys)

    def _is_closed(self, end: Column) -> Column:
        """Whether a window that ends at `end`, in milliseconds, was closed when an event was read."""
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
            # Spark has no sessions without a key, and would optimize a constant away.
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
        """The end of an event's last window, in milliseconds."""
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
        """Reject a stream with a schema: late events are stored as JSON, whatever their columns."""
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
    """The aggregates of each window; an aggregate that raises, such as a division by zero, makes a note."""
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

    # A function call removes the watermark's mark from the time: from here on `window_end` has the mark.
    columns = [f.coalesce(f.col(quote(name))).alias(name) for name in names]
    event = f.col(quote(EVENT))
    order = f.struct(
        f.unix_micros(quote(TIME)).alias("time"),
        event.getField("offset").alias("offset"),
        event.getField("place").alias("place"),
    )
    # The place means nothing outside its batch, and a step after the window has its own order.
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
