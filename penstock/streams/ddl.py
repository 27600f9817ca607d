"""Reads Spark DDL into Arrow fields without a JVM.

sqlglot tokenizes the text. The parser here follows Spark's own grammar for column lists exactly: sqlglot's
parser also accepts types that Spark rejects, such as `TEXT` or `DATETIME`, and a stream must not be saved
with a schema that its readers cannot use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import Invalid, Problem, did_you_mean

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
NESTED = ("ARRAY", "MAP", "STRUCT")

UNSUPPORTED = {
    "CHAR": "use STRING",
    "CHARACTER": "use STRING",
    "VARCHAR": "use STRING",
    "TIME": "use STRING, or a TIMESTAMP_NTZ with the date",
    "INTERVAL": "use BIGINT, and put the unit in the name",
    "VARIANT": "use STRING and keep the JSON text in it",
    "VOID": "leave the column out",
    "GEOMETRY": "use BINARY (WKB) or STRING (WKT)",
    "GEOGRAPHY": "use BINARY (WKB) or STRING (WKT)",
    "OBJECT": "use STRUCT or MAP",
}

WORD = re.compile(r"[A-Za-z0-9_]+")
SYNTAX_HINT = "declare columns as Spark DDL: id BIGINT, name STRING NOT NULL, tags ARRAY<STRING>"
QUOTING_HINT = "put a name with other characters in `backquotes`"


class Parser:
    """Recursive descent over the tokens of a column list."""

    def __init__(self, ddl: str) -> None:
        self.ddl = ddl
        try:
            # With the bracket, a first column named like a command, such as `show`, is an ordinary word.
            self.tokens = Spark().tokenize("(" + ddl)[1:]
        except TokenError:
            raise self.refusal("a quote is not closed") from None
        self.at = 0

    def columns(self) -> Iterator[pa.Field]:
        """The fields, until the end of the text."""
        if not self.tokens:
            raise self.refusal("no column")
        yield from self.fields("the columns")
        if self.at < len(self.tokens):
            raise self.unexpected("a comma or the end")

    def fields(self, where: str) -> list[pa.Field]:
        found = [self.field()]
        while self.takes(","):
            found.append(self.field())
        names = [field.name.lower() for field in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise Invalid(
                Problem(
                    code="invalid_schema",
                    message=f"duplicate name '{twice}' in {where}; names are case-insensitive",
                    path="schema",
                    hint="rename one of them",
                )
            )
        return found

    def field(self) -> pa.Field:
        name = self.name()
        self.takes(":")
        kind = self.type(name)
        if self.takes("COLLATE"):
            raise self.unsupported("STRING with a collation", "compare in SQL instead: lower(name) = …")
        required = self.takes("NOT")
        if required and not self.takes("NULL"):
            raise self.unexpected("NULL after NOT")
        if self.takes("COMMENT"):
            self.comment()
        return pa.field(name, kind, nullable=not required)

    def name(self) -> str:
        token = self.next("the name of a column")
        if token.token_type is TokenType.IDENTIFIER and token.text:
            return str(token.text)
        if token.token_type in (TokenType.NUMBER, TokenType.STRING) or not WORD.fullmatch(token.text):
            self.at -= 1
            raise self.unexpected("the name of a column", QUOTING_HINT)
        return str(token.text)

    def comment(self) -> None:
        if self.next("the text of the comment").token_type not in (TokenType.STRING, TokenType.RAW_STRING):
            self.at -= 1
            raise self.unexpected("the text of the comment in quotes")
        while self.peek() is TokenType.STRING:  # adjacent strings are one
            self.at += 1

    def type(self, column: str) -> pa.DataType:
        token = self.next(f"the type of '{column}'")
        word = token.text.upper()
        if word in UNSUPPORTED:
            raise self.unsupported(word, UNSUPPORTED[word])
        if word in NESTED:
            return self.nested(word, column)
        if word in DECIMALS:
            return self.decimal()
        if word not in TYPES or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            if not WORD.search(word):
                self.at -= 1
                raise self.unexpected(f"the type of '{column}'", QUOTING_HINT)
            known = [name.lower() for name in (*TYPES, "DECIMAL", *NESTED)]
            raise self.refusal(f"'{column}' has the type '{token.text}'", did_you_mean(word, known))
        if self.takes("("):
            raise self.refusal(f"{word} takes no length", f"use {column} {word}")
        return TYPES[word]

    def nested(self, word: str, column: str) -> pa.DataType:
        if self.takes("<>"):
            raise self.unsupported(f"{word}<>", "add at least one field")
        self.expect("<")
        if word == "STRUCT":
            made = pa.struct(self.fields(f"the fields of '{column}'"))
        elif word == "ARRAY":
            made = pa.list_(pa.field("element", self.type(column)))
        else:
            key = self.type(column)
            if pa.types.is_nested(key):
                raise self.unsupported(f"MAP with a key of {key}", "use a simple type for the key")
            self.expect(",")
            made = pa.map_(pa.field("key", key, nullable=False), pa.field("value", self.type(column)))
        self.expect(">")
        return made

    def decimal(self) -> pa.DataType:
        precision, scale = 10, 0  # Spark's defaults for a bare DECIMAL
        if self.takes("("):
            precision = self.number()
            scale = self.number() if self.takes(",") else 0
            self.expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self.refusal(
                f"DECIMAL({precision},{scale}) is not a valid type",
                "DECIMAL(precision 1 to 38, scale up to the precision)",
            )
        return pa.decimal128(precision, scale)

    def number(self) -> int:
        token = self.next("a number")
        if not token.text.isascii() or not token.text.isdigit():
            self.at -= 1
            raise self.unexpected("a number")
        return int(token.text)

    # Tokens

    def peek(self) -> TokenType | None:
        return self.tokens[self.at].token_type if self.at < len(self.tokens) else None

    def next(self, wanted: str) -> Token:
        if self.at == len(self.tokens):
            raise self.unexpected(wanted)
        self.at += 1
        return self.tokens[self.at - 1]

    def takes(self, text: str) -> bool:
        """Consume the next token if it is `text`, which is punctuation or a word."""
        found = self.at < len(self.tokens) and self.tokens[self.at].text.upper() == text
        found = found and self.peek() not in (TokenType.STRING, TokenType.IDENTIFIER)
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise self.unexpected(f"'{text}'")

    # Refusals

    def unexpected(self, wanted: str, hint: str = SYNTAX_HINT) -> Invalid:
        found = f"'{self.tokens[self.at].text}'" if self.at < len(self.tokens) else "the end"
        return self.refusal(f"found {found}, expected {wanted}", hint)

    def refusal(self, what: str, hint: str = SYNTAX_HINT) -> Invalid:
        message = f"{what} in {self.ddl!r}"
        return Invalid(Problem(code="invalid_schema", message=message, path="schema", hint=hint))

    def unsupported(self, what: str, hint: str) -> Invalid:
        message = f"a stream can't store {what}"
        return Invalid(Problem(code="unsupported_type", message=message, path="schema", hint=hint))
