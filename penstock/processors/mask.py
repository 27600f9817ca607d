"""The `mask` step."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from penstock.errors import Invalid, Problem
from penstock.processors.base import RowProcessor
from penstock.spark.driver import compile_pattern
from penstock.specs.base import Spec
from penstock.specs.conditions import only_with, unmet
from penstock.sql.names import Path, case_sensitive, find, leaf_type, paths, quote
from penstock.sql.problems import told, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

BLOCK = 64
"""Bytes in a block of SHA-256, to which HMAC pads its key."""


class Masking(Spec):
    """How one field is masked."""

    field: str = Field(
        min_length=1, description="The column. A dot selects a field of a struct: `user.email`."
    )
    method: Literal["hash", "redact", "tokenise"] = Field(
        description="hash: SHA-256 in hex; redact: characters are replaced; "
        "tokenise: a token that can be reproduced only with the secret (HMAC-SHA256 in hex)."
    )
    salt: str = Field(
        default="", description="Text added before the value.", json_schema_extra=only_with(method=["hash"])
    )
    keep_last: int = Field(
        default=0,
        ge=0,
        description="Number of characters kept at the end; none of a shorter value.",
        json_schema_extra=only_with(method=["redact"]),
    )
    pattern: str | None = Field(
        default=None,
        min_length=1,
        description="Regular expression; each match is replaced by one `replacement`.",
        json_schema_extra=only_with(method=["redact"]),
    )
    replacement: str = Field(
        default="*",
        description="Replacement for each character, or for each match of `pattern`.",
        json_schema_extra=only_with(method=["redact"]),
    )
    secret: str | None = Field(
        default=None,
        min_length=1,
        description="The key, preferably `${NAME}`.",
        json_schema_extra=only_with(method=["tokenise"]),
    )
    prefix: str = Field(
        default="", description="Prefix of every token.", json_schema_extra=only_with(method=["tokenise"])
    )

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if odd := sorted(name for name in self.model_fields_set if unmet(self, name)):
            raise ValueError(f"'{odd[0]}' can't be used with method '{self.method}'")
        if self.method == "tokenise" and self.secret is None:
            raise ValueError("method 'tokenise' needs a 'secret'")
        if self.pattern is not None and self.keep_last:
            raise ValueError("'keep_last' can't be used with 'pattern'")
        return self


class MaskProcessor(RowProcessor):
    """Masks personal and secret fields.

    The result is text; NULL stays NULL. A field inside a struct is masked in place, and an array is masked
    element by element. The same value always has the same hash and, with the same secret, the same token, so
    events can still be joined and counted by them. A plain hash of a short value, such as a phone number, can
    be reversed by trying all possible values: use a secret salt, or tokens.
    """

    example: ClassVar[str] = """\
type: mask
fields:
  - {field: card, method: redact, keep_last: 4}
  - {field: user.email, method: hash, salt: pepper}
  - {field: user.id, method: tokenise, secret: "${TOKEN_SECRET:-change me}", prefix: tok_}
"""

    type: Literal["mask"] = "mask"
    fields: list[Masking] = Field(min_length=1, description="Fields to mask.")

    def apply(self, df: DataFrame) -> DataFrame:
        """The events with those fields masked."""
        from pyspark.sql import functions as f

        sensitive = case_sensitive(df)
        columns: dict[str, Column] = {name: f.col(quote(name)) for name in df.columns}
        seen: dict[Path, str] = {}
        problems = []
        for i, masking in enumerate(self.fields):
            path = find(df.schema, masking.field, sensitive)
            problem = _trouble(df, masking, path, seen)
            if problem is not None:
                problems.append(problem.model_copy(update={"path": f"fields[{i}].{problem.path}"}))
                continue
            assert path is not None
            seen[path] = masking.field
            masked = _masked(f.col(quote(*path)), leaf_type(df.schema, path), masking)
            inside = quote(*path[1:])
            columns[path[0]] = columns[path[0]].withField(inside, masked) if inside else masked
        if problems:
            raise Invalid(*problems)
        with told("fields", df.columns):
            return df.select(*(column.alias(name) for name, column in columns.items()))


def _trouble(df: DataFrame, masking: Masking, path: Path | None, seen: dict[Path, str]) -> Problem | None:
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if path is None:
        missing = unknown_column(masking.field, list(paths(df.schema)))
        return missing.model_copy(update={"path": "field"})
    for other, name in seen.items():
        if path[: len(other)] == other or other[: len(path)] == path:
            message = f"'{masking.field}' and '{name}' are the same field, or one is inside the other"
            return Problem(code="duplicate_column", message=message, path="field")
    kind = leaf_type(df.schema, path)
    if isinstance(_element(kind), StructType | MapType | ArrayType | VariantType):
        message = f"column '{masking.field}' is {kind.simpleString()}: only single values can be masked"
        hint = "mask the fields inside it" if isinstance(kind, StructType) else "remove it with drop_fields"
        return Problem(code="sql_type", message=message, path="field", hint=hint)
    return _bad_pattern(df, masking.pattern) if masking.pattern else None


def _bad_pattern(df: DataFrame, pattern: str) -> Problem | None:
    from pyspark.errors import IllegalArgumentException

    try:
        compile_pattern(df.sparkSession, pattern)
    except IllegalArgumentException as error:
        why = str(error).splitlines()[0]
        message = f"this is not a regular expression: {why[:1].lower()}{why[1:]}"
        return Problem(code="invalid_value", message=message, path="pattern")
    return None


def _element(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType

    return kind.elementType if isinstance(kind, ArrayType) else kind


def _masked(column: Column, kind: DataType, masking: Masking) -> Column:
    """The column, or each element of it, masked."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, BinaryType

    if isinstance(kind, ArrayType):
        element = kind.elementType
        return f.transform(column, lambda each: _masked(each, element, masking))
    if masking.method == "redact":
        return _redacted(column.cast("string"), masking)
    value = column if isinstance(kind, BinaryType) else column.cast("string").cast("binary")
    if masking.method == "hash":
        return f.sha2(f.concat(f.lit(masking.salt.encode()), value), 256)
    assert masking.secret is not None
    return f.concat(f.lit(masking.prefix), hmac_sha256(masking.secret.encode(), value))


def _redacted(text: Column, masking: Masking) -> Column:
    from pyspark.sql import functions as f

    if masking.pattern is not None:
        # Spark's replacement may refer to groups; ours is literal text.
        literal = re.sub(r"([\\$])", r"\\\1", masking.replacement)
        return f.regexp_replace(text, masking.pattern, literal)
    length = f.char_length(text)
    hidden = f.when(length > masking.keep_last, length - masking.keep_last).otherwise(length)
    return f.concat(f.repeat(f.lit(masking.replacement), hidden), f.substring(text, hidden + 1, length))


def hmac_sha256(key: bytes, message: Column) -> Column:
    """HMAC-SHA256 (RFC 2104) of binary values in hex: Spark has the hash but not the HMAC."""
    from pyspark.sql import functions as f

    block = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    inner, outer = (f.lit(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    return f.sha2(f.concat(outer, f.unhex(f.sha2(f.concat(inner, message), 256))), 256)
