"""Lines of JSON read by Spark's own reader, which is the fastest, and held to the rule that streams have.

Spark rounds, cuts and guesses where it reads a time or a narrow integer, so those columns are read as text
or as wider integers, and converted here, strictly. What it cannot be brought to do by the rule is left to
`file_records`: decimals, FLOAT, BINARY and nested types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.file_form import CORRUPT
from penstock.processors.base import NOTE
from penstock.sql.names import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from penstock.specs.stream import Timestamps

OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}

AS_IS = ("boolean", "smallint", "int", "bigint", "double", "string")
"""Types whose values Spark's reader takes and refuses as the rule does."""

READ_AS = {"tinyint": "smallint", "date": "string", "timestamp": "string", "timestamp_ntz": "string"}

DAY = r"(?!0000)\\d{4}-\\d\\d-\\d\\d"
USUAL = rf"^{DAY}[T ](?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{{1,6}})?"
USUAL_ZONE = r"(?:Z|[+-](?:0\\d|1[0-7]):[0-5]\\d)?"
TIME = (
    rf"^({DAY})(?:[T ]((?:[01]\\d|2[0-3])(?::[0-5]\\d(?::[0-5]\\d)?)?)"
    r"(?:(?<=:\\d\\d:\\d\\d)\\.(\\d{1,6})0{0,3})?"
    r"(?:(Z)|([+-])([01]\\d|2[0-3])(?::?([0-5]\\d))?)?)?$"
)
"""The times that `penstock.streams.decode.times` takes, in parts: day, time, fraction, Z, sign, hours,
minutes."""
FIRST, LAST = "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"


def readable(schema: StructType) -> bool:
    """Whether Spark's own reader can be held to the rule."""
    return all(field.dataType.simpleString() in (*AS_IS, *READ_AS) for field in schema.fields)


def read_as(schema: StructType, timestamps: Timestamps) -> StructType:
    """The columns that Spark shall read."""
    from pyspark.sql.types import StructType

    kinds = {}
    for field in schema.fields:
        name = field.dataType.simpleString()
        is_number = name == "timestamp" and timestamps != "iso"
        kinds[field.name] = "bigint" if is_number else READ_AS.get(name, name)
    kinds[CORRUPT] = "string"
    made = StructType.fromDDL(", ".join(f"{quote(name)} {kind}" for name, kind in kinds.items()))
    assert isinstance(made, StructType)
    return made


def converted(df: DataFrame, schema: StructType, timestamps: Timestamps) -> DataFrame:
    """The events, and notes of the records that are none; the engine finds out the reasons."""
    from pyspark.sql import functions as f

    from penstock.processors.noting import note

    columns, wrong = [], f.col(quote(CORRUPT)).isNotNull()
    for field in schema.fields:
        source = f.col(quote(field.name))
        made = _value(quote(field.name), field.dataType, timestamps)
        columns.append(made.alias(field.name))
        if field.dataType.simpleString() in READ_AS:
            wrong = wrong | (source.isNotNull() & made.isNull())
        if not field.nullable:
            wrong = wrong | source.isNull()
    read = [f.col(quote(field.name)) for field in schema.fields]
    row = f.coalesce(f.col(quote(CORRUPT)), f.to_json(f.struct(*read)))
    made_note = f.when(wrong, note("fault", "source", "malformed", row=row))
    return df.select(*columns, made_note.alias(NOTE))


def _value(name: str, kind: DataType, timestamps: Timestamps) -> Column:
    """A column as it is wanted; null where its text does not fit."""
    from pyspark.sql import functions as f

    match kind.simpleString():
        case "tinyint":
            return f.expr(f"CASE WHEN {name} BETWEEN -128 AND 127 THEN CAST({name} AS TINYINT) END")
        case "date":
            return f.expr(f"CASE WHEN {name} RLIKE '^{DAY}$' THEN TRY_CAST({name} AS DATE) END")
        case "timestamp" if timestamps != "iso":
            from penstock.streams.decode.epochs import UNITS

            factor = UNITS[timestamps][1]
            first, last = (f"unix_micros(TIMESTAMP'{end}Z') DIV {factor}" for end in (FIRST, LAST))
            inside = f"{name} BETWEEN {first} AND {last}"
            return f.expr(f"CASE WHEN {inside} THEN timestamp_micros({name} * {factor}) END")
        case "timestamp":
            return _within(f.expr(_time(name, "TIMESTAMP", USUAL_ZONE)), "TIMESTAMP")
        case "timestamp_ntz":
            return _within(f.expr(_time(name, "TIMESTAMP_NTZ", "")), "TIMESTAMP_NTZ")
    return f.col(name)


def _time(name: str, kind: str, zone: str) -> str:
    """A time: what Spark reads as the rule does by Spark, and other forms in parts."""
    day, time, fraction, sign, hours, minutes = (
        f"regexp_extract({name}, '{TIME}', {group})" for group in (1, 2, 3, 5, 6, 7)
    )
    clock = f"concat({time}, substr('00:00:00', length({time}) + 1))"
    local = f"TRY_CAST(concat({day}, 'T', {clock}, '.', {fraction}, '0') AS {kind})"
    offset = f"(CAST({hours} AS INT) * 60 + CAST(concat('0', {minutes}) AS INT))"
    minutes_to_utc = f"CASE {sign} WHEN '+' THEN -{offset} WHEN '-' THEN {offset} ELSE 0 END"
    moved = f"timestampadd(MINUTE, {minutes_to_utc}, {local})"
    unzoned = "" if zone else f" AND NOT {name} RLIKE '^.{{10}}.*[Z+-]'"
    other = f"WHEN {name} RLIKE '{TIME}'{unzoned} THEN {moved if zone else local}"
    return f"CASE WHEN {name} RLIKE '{USUAL}{zone}$' THEN TRY_CAST({name} AS {kind}) {other} END"


def _within(time: Column, kind: str) -> Column:
    """A time, if it lies in the years 1 to 9999: a zone may move it out."""
    from pyspark.sql import functions as f

    zone = "Z" if kind == "TIMESTAMP" else ""
    first, last = (f.expr(f"{kind}'{end}{zone}'") for end in (FIRST, LAST))
    return f.when(time.between(first, last), time)
