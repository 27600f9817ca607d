"""A parser for the part of Bloblang that most mappings use."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_script import Assignment
from penstock.cli.convert.language.expressions import (
    Binary,
    Call,
    Choice,
    Deleted,
    Expression,
    Field,
    Items,
    Literal,
    Members,
    Meta,
    Method,
    Unary,
    rebased,
)

TOKEN = re.compile(
    r'(?P<space>[ \t\r]+|\#[^\n]*)|(?P<newline>\n)|(?P<block>""".*?""")|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<name>[$@]?[A-Za-z_]\w*)|(?P<sign>==|!=|>=|<=|&&|\|\||=>|->|[-+*/%!<>=|.(){}\[\],:@])",
    re.DOTALL,
)
LEVELS = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    ">": 3,
    ">=": 3,
    "<": 3,
    "<=": 3,
    "+": 4,
    "-": 4,
    "|": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
NAMES = {"&&": "and", "||": "or", "|": "??"}


@dataclass(frozen=True)
class Token:
    """A token of the text and its line, counted from 0."""

    kind: str
    text: str
    line: int


def parse_mapping(text: str) -> list[Assignment]:
    """The statements of a mapping. `Unmapped` for statements that this parser does not support."""
    reader = _Reader(_tokens(text))
    found = []
    while not reader.skip_lines():
        found.append(reader.statement())
    return found


def parse_query(text: str) -> Expression:
    """A single expression, such as the `check` of a case."""
    reader = _Reader(_tokens(text))
    reader.skip_lines()
    found = reader.expression()
    if not reader.skip_lines():
        raise Unmapped(f"'{reader.peek().text}' is not understood")
    return found


def _tokens(text: str) -> list[Token]:
    found, at, line = [], 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Unmapped(f"'{text[at : at + 10].strip()}' is not understood")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        at = match.end()
    return [*found, Token("end", "", line)]


class _Reader:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def skip_lines(self) -> bool:
        """Skip line ends. Returns whether the end of the text is reached."""
        while self.peek().kind == "newline":
            self.at += 1
        return self.peek().kind == "end"

    def take(self, text: str) -> bool:
        if self.peek().text == text and self.peek().kind in ("sign", "name"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        self.skip_lines()
        if not self.take(text):
            raise Unmapped(f"'{self.peek().text or 'the end'}' found, but '{text}' was expected")

    def statement(self) -> Assignment:
        first = self.next()
        if first.text in ("map", "import", "from") and self.peek().kind in ("name", "text"):
            raise Unmapped(f"'{first.text}' statements have no equivalent", "write the mapping out")
        if first.text == "let":
            path: tuple[str, ...] = (self._name(),)
            target = "let"
        elif first.text == "meta" and self.peek().text != "=":
            path, target = (self._name(),), "meta"
        elif first.text.startswith("@") and len(first.text) > 1:
            path, target = (first.text[1:],), "meta"
        elif first.text == "root" or first.kind == "name":
            steps = [] if first.text == "root" else [first.text]
            while self.take("."):
                steps.append(self._name())
            path, target = tuple(steps), "root"
        else:
            raise Unmapped(f"'{first.text}' is not the start of a supported statement")
        self.expect("=")
        self.skip_lines()
        value = self.expression()
        if self.peek().kind not in ("newline", "end"):
            raise Unmapped(f"'{self.peek().text}' is not understood")
        return Assignment(target, path, value, first.line)

    def expression(self, level: int = 1) -> Expression:
        left = self.unary()
        while True:
            here = self.at
            self.skip_lines()
            sign = self.peek()
            own = LEVELS.get(sign.text, 0) if sign.kind == "sign" else 0
            if own < level or own == 0:
                self.at = here
                return left
            self.next()
            self.skip_lines()
            left = Binary(NAMES.get(sign.text, sign.text), left, self.expression(own + 1))

    def unary(self) -> Expression:
        if self.take("!"):
            return Unary("not", self.unary())
        if self.take("-"):
            value = self.unary()
            if isinstance(value, Literal) and isinstance(value.value, int | float):
                return Literal(-value.value)
            return Unary("-", value)
        return self.postfix(self.primary())

    def postfix(self, value: Expression) -> Expression:
        while True:
            here = self.at
            self.skip_lines()
            if not self.take("."):
                self.at = here
                return value
            self.skip_lines()
            if self.peek().text == "(":
                raise Unmapped(
                    "a computed path such as this.(a | b) has no equivalent", "write it with .or()"
                )
            name = self._name()
            if self.take("("):
                value = self._method(value, name, self._arguments())
            elif isinstance(value, Field):
                value = Field((*value.path, name))
            else:
                raise Unmapped(f"the field '{name}' of a computed value has no equivalent")

    def _method(self, value: Expression, name: str, arguments: tuple[Expression, ...]) -> Expression:
        if name == "not":
            return Unary("not", value)
        if name == "catch":
            raise Unmapped("'catch' has no equivalent", "an event whose step fails goes to the dead letters")
        return Method(value, name, arguments)

    def primary(self) -> Expression:
        token = self.next()
        match token.kind:
            case "text":
                return Literal(json.loads(token.text))
            case "block":
                return Literal(token.text[3:-3])
            case "number":
                return Literal(float(token.text) if "." in token.text else int(token.text))
            case "name":
                return self._named(token)
        if token.text == "(":
            self.skip_lines()
            inside = self.expression()
            self.expect(")")
            return inside
        if token.text == "[":
            return Items(tuple(self._list("]")))
        if token.text == "{":
            return self._object()
        raise Unmapped(f"'{token.text or 'the end'}' is not understood")

    def _named(self, token: Token) -> Expression:
        word = token.text
        constants: dict[str, Expression] = {
            "true": Literal(True), "false": Literal(False), "null": Literal(None), "this": Field(),
        }  # fmt: skip
        if word in constants:
            return constants[word]
        if word == "root":
            raise Unmapped("a value of 'root' cannot be read", "use 'this', or a second mapping step")
        if word.startswith("$"):
            return Call("var", (Literal(word[1:]),))
        if word.startswith("@"):
            return Meta(word[1:])
        if word == "if":
            return self._if()
        if word == "match":
            return self._match()
        if self.take("("):
            return _call(word, self._arguments())
        return Field((word,))

    def _if(self) -> Expression:
        cases = []
        while True:
            self.skip_lines()
            when = self.expression()
            cases.append((when, self._braced()))
            here = self.at
            self.skip_lines()
            if not self.take("else"):
                self.at = here
                return Choice(tuple(cases))
            self.skip_lines()
            if not self.take("if"):
                return Choice(tuple(cases), self._braced())

    def _braced(self) -> Expression:
        self.expect("{")
        self.skip_lines()
        value = self.expression()
        self.expect("}")
        return value

    def _match(self) -> Expression:
        target: Expression | None = None if self.peek().text == "{" else self.expression()
        self.expect("{")
        cases: list[tuple[Expression, Expression]] = []
        otherwise: Expression | None = None
        while True:
            self.skip_lines()
            if self.take("}"):
                return Choice(tuple(cases), otherwise) if cases else otherwise or Literal(None)
            default = self.take("_")
            pattern = None if default else self.expression()
            self.expect("=>")
            self.skip_lines()
            then = self.expression()
            if target is not None:
                then = rebased(then, target)
                if pattern is not None:
                    literal = isinstance(pattern, Literal)
                    pattern = Binary("==", target, pattern) if literal else rebased(pattern, target)
            if pattern is None:
                otherwise = then
            else:
                cases.append((pattern, then))
            self.take(",")

    def _object(self) -> Expression:
        members: list[tuple[str, Expression]] = []
        while True:
            self.skip_lines()
            if self.take("}"):
                return Members(tuple(members))
            key = self.next()
            if key.kind != "text":
                raise Unmapped("a computed key of an object has no equivalent")
            self.expect(":")
            self.skip_lines()
            members.append((json.loads(key.text), self.expression()))
            self.skip_lines()
            self.take(",")

    def _list(self, end: str) -> list[Expression]:
        items: list[Expression] = []
        while True:
            self.skip_lines()
            if self.take(end):
                return items
            if self.peek().kind == "name" and self.peek(1).text in (":", "->"):
                if self.peek(1).text == "->":
                    raise Unmapped("a query as an argument has no equivalent")
                self.at += 2  # a named argument: the functions here have a fixed order of arguments
                self.skip_lines()
            items.append(self.expression())
            self.skip_lines()
            self.take(",")

    def _arguments(self) -> tuple[Expression, ...]:
        return tuple(self._list(")"))

    def _name(self) -> str:
        token = self.next()
        if token.kind == "text":
            return str(json.loads(token.text))
        if token.kind not in ("name", "number"):
            raise Unmapped(f"'{token.text or 'the end'}' is not a name")
        return token.text


def _call(name: str, arguments: tuple[Expression, ...]) -> Expression:
    match name, arguments:
        case "deleted", ():
            return Deleted()
        case "nothing", ():
            return Choice(())
        case (("meta" | "metadata"), (Literal(str() as key),)):
            return Meta(key)
        case "json", ():
            return Field()
        case "json", (Literal(str() as path),):
            return Field(tuple(path.split(".")))
    return Call(name, arguments)
