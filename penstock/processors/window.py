"""The `window` step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.logs import place_of
from penstock.errors import Invalid, Problem
from penstock.processors.base import EVENT, NOTE, FrameProcessor, Stage, visible
from penstock.processors.event_time import SYSTEM, TIME, TIME_FIELD, end_marks, is_late, time_column, timed
from penstock.processors.keys import key_columns
from penstock.processors.known import event_of
from penstock.processors.noting import noted, shown
from penstock.specs.durations import DurationText, SpanText, parse_duration
from penstock.sql.frames import aggregate, aggregated
from penstock.sql.names import case_sensitive, quote, same
from penstock.sql.tries import tried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

START, END = "window_start", "window_end"
WINDOW, MADE, ALL = "$window", "$made", "$all"


class WindowProcessor(FrameProcessor):
    """Puts the events of a stretch of time together.

    - `tumbling`: windows of `size`, one after the other.
    - `hopping`, also called `sliding`: windows of `size` that begin every `slide`, so an event is in several.
    - `session`: as long as no more than `gap` lies between two events.

    Windows are counted from 1970-01-01T00:00Z, moved by `offset`. Each combination of `keys` has its own. The
    result has `window_start`, `window_end`, the keys, and what `aggregates` say; with `emit: events` it is
    the events themselves with these two columns before them, in the order of time, and a step in JavaScript
    or Python that follows gets all events of a window as one batch. The key of an event that a window makes
    is the value of `keys`, if that is one column.

    A window is closed, and goes on, when the latest time of all events so far is past its end by
    `allowed_lateness`. An event that comes after that is late: it is counted, and kept in the stream `late`,
    if that is named. Neither the clock nor how events are cut into batches has a part in this, so old data
    gives the same windows as live data. At the end of a finite input all windows are closed; windows of
    system time are closed by the clock within a few seconds. An event without a time goes to the dead
    letters.
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
        default="tumbling", description="How time is divided; `sliding` is another word for `hopping`."
    )
    time: str = Field(default=SYSTEM, min_length=1, description=TIME_FIELD)
    size: SpanText | None = Field(
        default=None, description="How long a window is, such as 10s, 5m or 1h; not for sessions."
    )
    slide: SpanText | None = Field(
        default=None, description="For hopping windows: how often one begins; at most `size`."
    )
    gap: SpanText | None = Field(default=None, description="For sessions: the pause that ends one.")
    offset: DurationText = Field(
        default="0s", description="By how much windows begin later, such as 6h for days from six to six."
    )
    allowed_lateness: DurationText = Field(
        default="0s", description="How long a window waits for events that are late."
    )
    keys: list[str] = Field(
        default_factory=list, description="Columns whose values have windows of their own."
    )
    aggregates: dict[str, str] | None = Field(
        default=None, min_length=1, description="Column name → aggregate in Spark SQL, such as `count(*)`."
    )
    emit: Literal["aggregates", "events"] = Field(
        default="aggregates", description="What a window gives: its aggregates, or its events."
    )
    late: str | None = Field(
        default=None,
        min_length=1,
        description="Id of a Stream without a schema that gets late events, as JSON.",
    )

    stateful: ClassVar[bool] = True
    folds: ClassVar[bool] = True

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        session, hopping = self.kind == "session", self.kind in ("hopping", "sliding")
        for name, wanted in (("size", not session), ("slide", hopping), ("gap", session)):
            if (getattr(self, name) is not None) != wanted:
                raise ValueError(f"a {self.kind} window {'needs' if wanted else 'has no'} '{name}'")
        if session and "offset" in self.model_fields_set:
            raise ValueError("a session window has no 'offset'")
        if hopping and self._slide_ms > self._size_ms:
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

    def open_ms(self) -> int:
        return self._size_ms + parse_duration(self.allowed_lateness)

    def state_of(self) -> dict[str, Any]:
        fields = ("kind", "time", "size", "slide", "gap", "offset", "keys", "aggregates", "emit")
        return {name: getattr(self, name) for name in fields}

    def prepare(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events that have a time, are not late, and that all aggregates can be computed of."""
        from pyspark.sql import functions as f

        self._check_late(stage)
        time = time_column(df, self.time)
        note = f.when(time.isNull(), noted(df, stage.step, "no_time", f.lit(f"'{self.time}' is NULL")))
        inputs = aggregated(shown(df), list(self._aggregates(df).values())) if self.aggregates else []
        made = df
        if inputs:
            made = df.withColumn(MADE, tried(df, *(c.alias(str(i)) for i, c in enumerate(inputs))))
            message = f.lit("an aggregate cannot be computed of this event")
            note = note.when(f.col(quote(MADE)).isNull(), noted(df, stage.step, "aggregate_failed", message))
        if self.late is not None and df.isStreaming:
            message = f.lit("the windows of this event are closed")
            late = is_late()(self._last_end(time))
            note = note.when(late, noted(df, stage.step, "late", message, kind="late"))
        return made.withColumn(NOTE, note).drop(MADE)

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The windows, or their events."""
        from pyspark.sql import functions as f

        keys, aggregates = key_columns(df, self.keys), self._aggregates(df)
        self._check_names(df, [*keys, *aggregates])
        df, time = timed(df, stage, self.time, parse_duration(self.allowed_lateness))
        groups = [self._window(time).alias(WINDOW), *(column.alias(name) for name, column in keys.items())]
        if self.kind == "session" and not keys:
            # Spark has no sessions without a key, and would see through a constant.
            groups.append(f.unix_micros(quote(time)).bitwiseAND(f.lit(0)).alias(ALL))
        together = _rows(df, time) if self.emit == "events" else tried(df, *_numbered(aggregates))
        windows = df.groupBy(*groups).agg(together.alias(MADE))
        bounds = [
            f.col(quote(WINDOW, "start")).alias(START),
            f.col(quote(WINDOW, "end")).alias(END, metadata=end_marks(df, time)),
        ]
        windows = windows.select(*bounds, *map(f.col, map(quote, keys)), f.col(quote(MADE)))
        if not windows.isStreaming:
            windows = windows.orderBy(START, END, *map(quote, keys))
        if self.emit == "events":
            return _events(windows, stage.step, visible(df.drop(TIME).columns), list(keys))
        return _values(windows, stage.step, list(aggregates), list(keys))

    def _window(self, time: str) -> Column:
        from pyspark.sql import functions as f

        if self.kind == "session":
            return f.session_window(quote(time), f"{self._size_ms} milliseconds")
        size, slide, offset = self._size_ms, self._slide_ms, self._offset_ms
        return f.window(
            quote(time), f"{size} milliseconds", f"{slide} milliseconds", f"{offset} milliseconds"
        )

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
        message = f"the stream '{self.late}' has a schema, and late events are kept as JSON"
        raise Invalid(
            Problem(code="typed_stream", message=message, path="late", hint="name a stream without one")
        )

    def _check_names(self, df: DataFrame, own: list[str]) -> None:
        sensitive = case_sensitive(df)
        taken: set[str] = set()
        names = visible(df.columns) if self.emit == "events" else own
        for name in (START, END, *names):
            if same(name, sensitive) in taken:
                message = f"a window would have two columns '{name}'"
                hint = "rename one of them before"
                raise Invalid(Problem(code="duplicate_column", message=message, hint=hint))
            taken.add(same(name, sensitive))


def _numbered(aggregates: dict[str, Column]) -> list[Column]:
    return [column.alias(str(i)) for i, column in enumerate(aggregates.values())]


def _values(windows: DataFrame, step: str, aggregates: list[str], keys: list[str]) -> DataFrame:
    """The aggregates of each window; one that raises, such as a division by zero, makes a note."""
    from pyspark.sql import functions as f

    made = f.col(quote(MADE))
    event = event_of(key=f.col(quote(keys[0])).cast("string")) if len(keys) == 1 else event_of()
    bounds = [f.col(name) for name in (START, END)]
    kept = windows.select(*bounds, *map(f.col, map(quote, keys)), event.alias(EVENT), made)
    message = f.lit("an aggregate of this window cannot be computed")
    note = f.when(made.isNull(), noted(kept.drop(MADE), step, "aggregate_failed", message))
    values = [made.getField(str(i)).alias(name) for i, name in enumerate(aggregates)]
    return kept.select(*bounds, *map(f.col, map(quote, keys)), *values, f.col(quote(EVENT)), note.alias(NOTE))


def _rows(df: DataFrame, time: str) -> Column:
    """All events of a group."""
    from pyspark.sql import functions as f

    # A function keeps the mark of the watermark from the time: it belongs to `window_end` from here on.
    columns = [f.coalesce(f.col(quote(name))).alias(name) for name in visible(df.drop(TIME).columns)]
    event = f.col(quote(EVENT))
    order = f.struct(f.unix_micros(quote(time)).alias("time"), event.getField("offset").alias("offset"))
    return f.collect_list(
        f.struct(order.alias("order"), f.struct(*columns).alias("row"), event.alias("event"))
    )


def _events(windows: DataFrame, step: str, columns: list[str], keys: list[str]) -> DataFrame:
    """The events of each window, one after the other."""
    from pyspark.sql import functions as f

    id = f.concat_ws(
        "/",
        f.lit(step),
        f.unix_millis(START).cast("string"),
        f.unix_millis(END).cast("string"),
        f.to_json(f.array(*(f.col(quote(key)).cast("string") for key in keys))),
    )
    each = windows.select(
        f.col(START), f.col(END), id.alias(ALL), f.explode(f.array_sort(quote(MADE), _by_time)).alias(MADE)
    )
    rows = [f.col(quote(MADE, "row", name)).alias(name) for name in columns]
    event = f.col(quote(MADE, "event")).withField("batch", f.col(quote(ALL)))
    return each.select(f.col(START), f.col(END), *rows, event.alias(EVENT))


def _by_time(one: Column, other: Column) -> Column:
    from pyspark.sql import functions as f

    first, second = one.getField("order"), other.getField("order")
    sooner, later = first < second, first > second
    return f.when(sooner, -1).when(later, 1).otherwise(0)
