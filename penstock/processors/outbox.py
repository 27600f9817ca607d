"""The `outbox` step."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from penstock.errors import Invalid, Problem
from penstock.frames.hidden import EVENT, EVENT_TYPE, NOTE
from penstock.frames.noting import noted, shown_schema
from penstock.processors.base import FrameProcessor, Stage
from penstock.sql.names import Path, case_sensitive, find, leaf_type, paths, quote
from penstock.sql.problems import unknown_column
from penstock.sql.schemas import parse_schema
from penstock.sql.tries import tried

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TRIED, SINK = "$tried", "$sink"
PLACEHOLDER = "aggregate_type"


def _template(text: str) -> str:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"not a valid template: {error}") from None
    if names != [PLACEHOLDER] * len(names) or not names:
        raise ValueError(f"a route may only have {{{PLACEHOLDER}}} in braces")
    return text


class OutboxProcessor(FrameProcessor):
    """Turns the rows of a transactional outbox into events.

    A service writes its events into a table in the transaction that changes its data; what reads that table,
    by polling or by change data capture, gives rows with the columns named here. The payload becomes the
    event: its fields as columns if `schema` names them, else JSON text in `value`. The aggregate id becomes
    the key of the event, so that the events of one aggregate keep their order; the other columns become its
    headers `event_id`, `event_type` and `aggregate_type`. A row whose payload does not fit goes to the dead
    letters.
    """

    routes: ClassVar[bool] = True
    example: ClassVar[str] = """\
type: outbox
aggregate_type: aggregatetype
aggregate_id: aggregateid
schema: "order_id BIGINT, total DOUBLE"
route: "{aggregate_type}_events"
"""

    type: Literal["outbox"] = "outbox"
    payload: str = Field(default="payload", description="Column with the payload as JSON.")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="Columns of the payload, as Spark DDL. Absent: the payload stays JSON in `value`.",
    )
    aggregate_type: str = Field(default="aggregatetype", description="Column with the kind of the aggregate.")
    aggregate_id: str = Field(default="aggregateid", description="Column with the id of the aggregate.")
    event_type: str = Field(
        default="type", description="Column with the type of the event. The default column may be missing."
    )
    event_id: str = Field(
        default="id", description="Column with the id of the event. The default column may be missing."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Additional headers: name → column. NULL adds no header."
    )
    route: Annotated[str, AfterValidator(_template)] | None = Field(
        default=None,
        description="Id of the sink, with `{aggregate_type}` in it. Absent: an event goes to all sinks.",
    )

    def apply(self, df: DataFrame, stage: Stage) -> DataFrame:
        """The events of the rows."""
        from pyspark.sql import functions as f

        columns = self._columns(df)
        rows = df.withColumn(TRIED, tried(df, *self._made(df, columns["payload"]))).withColumn(
            SINK, self._sink(columns)
        )
        note = f.when(
            f.col(quote(TRIED)).isNull(),
            noted(
                df, stage.step, "malformed_payload", f.lit("the payload is not JSON that matches the schema")
            ),
        )
        if self.route is not None:
            known = f.col(quote(SINK)).isin(*stage.sinks)
            message = f.concat(
                f.lit("there is no sink '"), f.coalesce(f.col(quote(SINK)), f.lit("NULL")), f.lit("'")
            )
            note = note.when(~f.coalesce(known, f.lit(False)), noted(df, stage.step, "unknown_sink", message))
        made = f.col(quote(TRIED, "0"))
        values = [made.alias("value")]
        if self.schema_ is not None:
            names = parse_schema(df.sparkSession, self.schema_, field="schema").names
            values = [made.getField(name).alias(name) for name in names]
        return rows.select(*values, self._event(columns).alias(EVENT), note.alias(NOTE))

    def _columns(self, df: DataFrame) -> dict[str, Path]:
        """Where each part of a row lies. A header has its name after a dot."""
        schema, sensitive = shown_schema(df), case_sensitive(df)
        named = {
            name: getattr(self, name)
            for name in ("payload", "aggregate_type", "aggregate_id", "event_type", "event_id")
        }
        named |= {f"headers.{name}": column for name, column in self.headers.items()}
        found: dict[str, Path] = {}
        problems = []
        for name, column in named.items():
            path = find(schema, column, sensitive)
            if path is not None:
                found[name] = path
            elif name not in ("event_type", "event_id") or name in self.model_fields_set:
                missing = unknown_column(column, list(paths(schema)))
                problems.append(missing.model_copy(update={"path": name}))
        if self.schema_ is not None:
            try:
                parse_schema(df.sparkSession, self.schema_, field="schema")
            except Invalid as error:
                problems += error.problems
        if problems:
            raise Invalid(*problems)
        return found

    def _made(self, df: DataFrame, payload: Path) -> list[Column]:
        """The payload as it goes on: text, or a struct of the schema."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import BinaryType, StringType, StructType

        kind = leaf_type(df.schema, payload)
        column: Any = f.col(quote(*payload))
        if isinstance(kind, BinaryType):
            text = column.cast("string")
        elif isinstance(kind, StringType):
            text = column
        elif isinstance(kind, StructType) or kind.typeName() in ("array", "map", "variant"):
            text = f.to_json(column)
        else:
            message = f"column '{self.payload}' is {kind.simpleString()}, not JSON"
            raise Invalid(Problem(code="sql_type", message=message, path="payload"))
        if self.schema_ is None:
            return [text.alias("0")]
        schema = parse_schema(df.sparkSession, self.schema_, field="schema")
        return [f.from_json(text, schema, {"mode": "FAILFAST"}).alias("0")]

    def _sink(self, columns: dict[str, Path]) -> Column:
        from pyspark.sql import functions as f

        if self.route is None:
            return f.lit(None).cast("string")
        parts: list[Column] = []
        for text, name, _, _ in string.Formatter().parse(self.route):
            parts.append(f.lit(text))
            if name is not None:
                parts.append(f.col(quote(*columns["aggregate_type"])).cast("string"))
        return f.concat(*parts)

    def _event(self, columns: dict[str, Path]) -> Column:
        from pyspark.sql import functions as f

        def text(name: str) -> Column:
            return f.col(quote(*columns[name])).cast("string")

        parts = ("event_id", "event_type", "aggregate_type")
        headers: dict[str, Column] = {name: text(name) for name in parts if name in columns}
        headers |= {name: text(f"headers.{name}") for name in self.headers}
        entries = [part for name, value in headers.items() for part in (f.lit(name), value)]
        made = f.map_filter(f.create_map(*entries), lambda _, value: value.isNotNull())
        sinks = f.when(f.col(quote(SINK)).isNotNull(), f.array(f.col(quote(SINK))))
        event = f.col(quote(EVENT)).withField("key", text("aggregate_id"))
        return event.withField("headers", made).withField("sinks", sinks).cast(EVENT_TYPE)
