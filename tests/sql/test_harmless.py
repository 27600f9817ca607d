"""Expressions that need not be tried: they raise on no value, however extreme."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from penstock.spark import plans
from penstock.spark.catalyst import Catalyst, resolved
from penstock.sql.harmless import FLOATING, PLAIN, Judge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "d": "DOUBLE",
    "r": "FLOAT",
    "l": "BIGINT",
    "i": "INT",
    "t": "BYTE",
    "m": "DECIMAL(38, 0)",
    "s": "STRING",
    "b": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP",
}

EXTREMES: dict[str, list[Any]] = {
    "DOUBLE": [None, "'NaN'", "'Infinity'", "'-Infinity'", "1.7976931348623157E308", "4.9E-324", "-0.0"],
    "FLOAT": [None, "'NaN'", "'-Infinity'", "3.4028235E38", "1.4E-45"],
    "BIGINT": [None, "9223372036854775807", "-9223372036854775808", "0"],
    "INT": [None, "2147483647", "-2147483648", "0"],
    "BYTE": [None, "127", "-128"],
    "DECIMAL(38, 0)": [None, "9" * 38, "-" + "9" * 38],
    "STRING": [None, "''", "'a[('", "repeat('ß😀', 100)", "'9999999999999999999999'"],
    "BOOLEAN": [None, "true", "false"],
    "DATE": [None, "'0001-01-01'", "'9999-12-31'", "date_from_unix_date(2147483647)", "'1582-10-04'"],
    "TIMESTAMP": [None, "'0001-01-01'", "'9999-12-31'", "timestamp_micros(9223372036854775807)"],
}

SNIPPETS = {
    "Abs": ["abs(d)", "abs(r)"],
    "Add": ["d + d", "r + r", "d + 1"],
    "And": ["b AND b"],
    "BitwiseAnd": ["l & i"],
    "BitwiseNot": ["~l", "~t"],
    "BitwiseOr": ["l | i"],
    "BitwiseXor": ["l ^ i"],
    "CaseWhen": ["CASE WHEN b THEN d ELSE r END"],
    "Coalesce": ["coalesce(d, r)"],
    "Contains": ["contains(s, s)", "contains(s, 'a[(')"],
    "CreateNamedStruct": ["struct(d, s, at)"],
    "DateAdd": ["date_add(day, i)", "date_add(day, t)"],
    "DateSub": ["date_sub(day, i)", "date_sub(day, t)"],
    "DayOfMonth": ["day(day)"],
    "DayOfWeek": ["dayofweek(day)"],
    "DayOfYear": ["dayofyear(day)"],
    "EndsWith": ["endswith(s, s)"],
    "EqualNullSafe": ["d <=> r", "s <=> s", "at <=> at"],
    "EqualTo": ["d = r", "l = i", "m = l", "s = s", "day = day"],
    "GetStructField": ["struct(d AS x).x"],
    "GreaterThan": ["d > 50", "m > l", "s > s", "at > at"],
    "GreaterThanOrEqual": ["d >= r"],
    "Greatest": ["greatest(d, r)"],
    "Hour": ["hour(at)"],
    "If": ["if(b, d, r)"],
    "In": ["l IN (1, 2, i)", "s IN ('a', 'b')"],
    "IsNaN": ["isnan(d)"],
    "IsNotNull": ["s IS NOT NULL"],
    "IsNull": ["s IS NULL"],
    "Least": ["least(d, r)"],
    "Length": ["length(s)"],
    "LessThan": ["l < i"],
    "LessThanOrEqual": ["at <= at"],
    "Lower": ["lower(s)"],
    "Minute": ["minute(at)"],
    "Month": ["month(day)"],
    "Multiply": ["d * 1.19", "d * d", "r * r"],
    "Not": ["NOT b"],
    "Or": ["b OR b"],
    "Quarter": ["quarter(day)"],
    "Round": ["round(d, 2)", "round(r, 2)", "round(d * 1.19, 2)", "round(d, -400)"],
    "Second": ["second(at)"],
    "StartsWith": ["startswith(s, s)"],
    "StringTrim": ["trim(s)"],
    "StringTrimLeft": ["ltrim(s)"],
    "StringTrimRight": ["rtrim(s)"],
    "Substring": ["substring(s, i, i)", "substring(s, 2, 3)"],
    "Subtract": ["d - d", "r - r"],
    "UnaryMinus": ["-d", "-r"],
    "Upper": ["upper(s)"],
    "WeekDay": ["weekday(day)"],
    "WeekOfYear": ["weekofyear(day)"],
    "Year": ["year(day)", "year(at)"],
}
"""SQL that has an expression at its root, by the name of the expression."""

RISKY = [
    "l + 1", "-l", "abs(l)", "round(l, -1)", "l * i", "d / d", "d / 2", "CAST(d AS INT)", "CAST(s AS DOUBLE)",
    "CAST(m AS BIGINT)", "split(s, s)", "s RLIKE s", "m + m", "CAST(l AS BYTE)", "array(l)[i]", "to_date(s)",
    "CAST(day AS TIMESTAMP)", "at + INTERVAL 1 YEAR", "CASE WHEN b THEN l + 1 ELSE 0 END",
]  # fmt: skip


@pytest.fixture(scope="module")
def extremes(spark: SparkSession) -> DataFrame:
    """Every value of each column, and all pairs of values of two columns."""
    kinds = list(COLUMNS.values())
    rows = []
    for (i, one), (j, two) in itertools.combinations(enumerate(kinds), 2):
        for left, right in itertools.product(EXTREMES[one], EXTREMES[two]):
            values: list[Any] = [None] * len(kinds)
            values[i], values[j] = left, right
            rows.append(
                ", ".join(f"CAST({each or 'NULL'} AS {k})" for each, k in zip(values, kinds, strict=True))
            )
    table = ", ".join(f"({row})" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {table} AS t({', '.join(COLUMNS)})").localCheckpoint()


def root(df: DataFrame, text: str) -> Any:
    """The resolved expression of a piece of SQL."""
    project = resolved(df.select(f.expr(text).alias("x")))
    return next(iter(plans.elements(project.projectList()))).child()


def test_each_expression_has_its_snippets() -> None:
    outer = {"Alias", "AttributeReference", "Literal", "OuterReference"}
    assert set(SNIPPETS) == (PLAIN | FLOATING) - outer


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_plain_expression_raises_on_no_value(extremes: DataFrame, name: str) -> None:
    judge = Judge(Catalyst(extremes.sparkSession))
    for text in SNIPPETS[name]:
        found = root(extremes, text)
        assert plans.name(found) == name, text
        assert judge.plain(found), text
    columns = [f.expr(text).alias(str(i)) for i, text in enumerate(SNIPPETS[name])]
    extremes.select(*columns).write.format("noop").mode("overwrite").save()


def test_an_expression_that_may_raise_is_not_plain(extremes: DataFrame) -> None:
    judge = Judge(Catalyst(extremes.sparkSession))
    assert [text for text in RISKY if judge.plain(root(extremes, text))] == []
