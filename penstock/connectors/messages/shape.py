"""Events as messages: target, key, value, headers, and the reason why an event can't be a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.connectors.file.form import WRITE, columns_in_form
from penstock.connectors.file.sink import has_no_form
from penstock.connectors.messages.template import columns_of, text_of
from penstock.errors import Problem, did_you_mean
from penstock.frames.hidden import EVENT, visible
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

KEY, HEADERS, VALUE = "_key", "_headers", "value"

TARGET = "target"
"""The column with the target of a message, such as a topic or a routing key."""

REFUSAL = "refusal"
"""The column with the reason why an event can't be a message: `code` and `message`, or NULL."""

ROW = "row"
"""The column with a rejected event as JSON."""


@dataclass(frozen=True)
class Limits:
    """The limits of a system for messages."""

    max_bytes: int
    """Maximum total size of value, key and headers in bytes."""
    target: str = "topic"
    """The system's term for the target of a message. The sink's field has the same name."""
    valid: str | None = None
    """A regular expression that a target must match; None: any non-empty text."""
    secret: bool = False
    """Whether a target may contain a secret, such as a token in a URL, and must not be shown."""
    overhead: int = 0
    """Maximum bytes that the system adds to a message, apart from up to ten bytes per header."""


def message_of(
    df: DataFrame, template: str, limits: Limits, target: Callable[[str], Column] = text_of
) -> DataFrame:
    """The frame as messages, with `refusal`; `row` and `$event` are set only for rejected events.

    `target` renders the template; by default, the values of columns are inserted unchanged.
    """
    from pyspark.sql import functions as f

    event = f.col(quote(EVENT))
    key, headers = _beside(df.schema, event)
    # In two steps, so that Spark computes the value only once and not again for its size.
    made = df.select(
        target(template).alias(TARGET),
        key.alias("key"),
        _value(df.schema).alias(VALUE),
        headers.alias("headers"),
        event,
    )
    size = f.coalesce(f.octet_length(VALUE), f.lit(0)) + f.coalesce(f.octet_length("key"), f.lit(0))
    refusal = _refusal(f.col(TARGET), size + _size_of(f.col("headers")) + limits.overhead, limits)
    return made.select(
        TARGET,
        "key",
        VALUE,
        "headers",
        refusal.alias(REFUSAL),
        f.when(refusal.isNotNull(), _row(df.schema)).alias(ROW),
        f.when(refusal.isNotNull(), event).alias(EVENT),
    )


def misfits(schema: StructType, template: str, path: str) -> Iterator[Problem]:
    """The problems with sending events of `schema` as messages. `path` is the sink's template field."""
    names = visible(schema.names)
    for name in columns_of(template):
        if name not in names:
            yield Problem(
                code="unknown_column",
                message=f"there is no column '{name}' for the {path}",
                path=path,
                hint=did_you_mean(name, names),
            )
    beside = {target: name for name, target in _columns_beside(schema).items()}
    for target, name in beside.items():
        wanted = "a MAP<STRING, STRING>" if target == HEADERS else "a STRING or BINARY"
        if schema[name].dataType.simpleString() not in _TYPES[target]:
            message = f"'{name}' must be {wanted} to be sent with the event"
            yield Problem(code="wrong_type", message=message, path=path, hint="cast it in a processor")
    if _has_value(schema):
        for name in names:
            if name != VALUE and name not in beside.values() and name not in columns_of(template):
                hint = "drop it, or rename 'value' to send the whole event as JSON"
                message = f"the column '{name}' can't be sent next to 'value' in a message"
                yield Problem(code="extra_column", message=message, path=path, hint=hint)
        return
    payload = _payload(schema)
    if not payload:
        yield Problem(code="no_columns", message="no columns remain for the value", path=path)
    for name in payload:
        if has_no_form(schema[name].dataType, "json"):
            kind = schema[name].dataType.simpleString()
            message = f"JSON can't hold '{name}', a {kind}"
            yield Problem(code="unsupported_type", message=message, path=path, hint="cast it to STRING")


_TYPES = {KEY: ("string", "binary"), HEADERS: ("map<string,string>",)}


def _value(schema: StructType) -> Column:
    """The value of a message, as bytes."""
    from pyspark.sql import functions as f

    if _has_value(schema):
        return f.col(VALUE).cast("binary")
    columns = columns_in_form([schema[name] for name in _payload(schema)], "json")
    return f.to_json(f.struct(*columns), WRITE["json"]).cast("binary")


def _row(schema: StructType) -> Column:
    """The event as JSON, from the value of its message."""
    from pyspark.sql import functions as f

    if not _has_value(schema):
        return f.col(VALUE).cast("string")
    is_text = schema[VALUE].dataType.typeName() == "string"
    return f.to_json(f.struct((f.col(VALUE).cast("string") if is_text else f.base64(VALUE)).alias(VALUE)))


def _beside(schema: StructType, event: Column) -> tuple[Column, Column]:
    """The key and the headers: from columns if present, else those the event arrived with."""
    from pyspark.sql import functions as f

    columns = {target: f.col(quote(name)) for name, target in _columns_beside(schema).items()}
    key = columns.get(KEY, event["key"]).cast("binary")
    return key, columns.get(HEADERS, event["headers"])


def _columns_beside(schema: StructType) -> dict[str, str]:
    """Columns that become the key or the headers: column → `_key` or `_headers`."""
    names = {KEY: KEY, HEADERS: HEADERS}
    if _has_value(schema):
        names = {"key": KEY, "headers": HEADERS, **names}
    found = {name: target for name, target in names.items() if name in schema.names}
    return {name: target for target, name in {t: n for n, t in found.items()}.items()}


def _payload(schema: StructType) -> list[str]:
    return [name for name in visible(schema.names) if name not in (KEY, HEADERS)]


def _has_value(schema: StructType) -> bool:
    return VALUE in schema.names and schema[VALUE].dataType.typeName() in ("string", "binary")


def _size_of(headers: Column) -> Column:
    """The maximum size of the headers in bytes."""
    from pyspark.sql import functions as f

    each = f.transform(
        f.map_entries(headers),
        lambda e: f.octet_length(e["key"]) + f.coalesce(f.octet_length(e["value"]), f.lit(0)) + 10,
    )
    return f.coalesce(f.aggregate(each, f.lit(0), lambda sum_, size: sum_ + size), f.lit(0))


def _refusal(target: Column, size: Column, limits: Limits) -> Column:
    from pyspark.sql import functions as f

    def made(code: str, message: Column) -> Column:
        return f.struct(f.lit(code).alias("code"), message.alias("message"))

    large = f.concat(
        f.lit("the event takes up to "),
        size.cast("string"),
        f.lit(f" bytes as a message; the limit is {limits.max_bytes}"),
    )
    unnamed = f.lit(f"the event has no valid {limits.target.replace('_', ' ')}: a column of it may be NULL")
    named = (
        unnamed
        if limits.secret
        else f.concat(
            f.lit(f"not a valid {limits.target.replace('_', ' ')}: '"),
            f.coalesce(target, f.lit("NULL")),
            f.lit("'"),
        )
    )
    fits = target != "" if limits.valid is None else target.rlike(limits.valid)
    return f.when(~f.coalesce(fits, f.lit(False)), made(f"invalid_{limits.target}", named)).when(
        size > limits.max_bytes, made("too_large", large)
    )
