"""Expression trees for the languages of other systems, independent of the language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.cli.convert.draft import Unmapped


class Expression:
    """A part of an expression."""


@dataclass(frozen=True)
class Literal(Expression):
    """A number, a text, true, false or null."""

    value: str | int | float | bool | None


@dataclass(frozen=True)
class Field(Expression):
    """A value inside the event, by its path; the whole event if the path is empty."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Meta(Expression):
    """Metadata of the event: its key, or a header."""

    name: str


@dataclass(frozen=True)
class Call(Expression):
    """A function call."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Method(Expression):
    """A method call on a value."""

    target: Expression
    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Binary(Expression):
    """Two values and an operator: `== != < <= > >= + - * / % and or ?? ~ in has`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Unary(Expression):
    """`not` or `-`."""

    operator: str
    value: Expression


@dataclass(frozen=True)
class Choice(Expression):
    """The value of the first condition that is true, or else `otherwise`; no value if that is None."""

    cases: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(frozen=True)
class Items(Expression):
    """An array."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Members(Expression):
    """An object."""

    members: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Deleted(Expression):
    """No value: the event or the field is deleted."""


def parts(expression: Expression) -> Iterator[Expression]:
    """An expression and all expressions inside it."""
    yield expression
    inside: list[Expression] = []
    match expression:
        case Call(_, arguments):
            inside = [*arguments]
        case Method(target, _, arguments):
            inside = [target, *arguments]
        case Binary(_, left, right):
            inside = [left, right]
        case Unary(_, value):
            inside = [value]
        case Choice(cases, otherwise):
            inside = [each for case in cases for each in case]
            inside += [] if otherwise is None else [otherwise]
        case Items(items):
            inside = [*items]
        case Members(members):
            inside = [value for _, value in members]
    for each in inside:
        yield from parts(each)


def rebuilt(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to all of its parts, innermost first."""

    def inside(part: Expression) -> Expression:
        return rebuilt(part, change)

    match expression:
        case Call(name, arguments):
            expression = Call(name, tuple(map(inside, arguments)))
        case Method(target, name, arguments):
            expression = Method(inside(target), name, tuple(map(inside, arguments)))
        case Binary(operator, left, right):
            expression = Binary(operator, inside(left), inside(right))
        case Unary(operator, value):
            expression = Unary(operator, inside(value))
        case Choice(cases, otherwise):
            made = tuple((inside(when), inside(then)) for when, then in cases)
            expression = Choice(made, None if otherwise is None else inside(otherwise))
        case Items(items):
            expression = Items(tuple(map(inside, items)))
        case Members(members):
            expression = Members(tuple((name, inside(value)) for name, value in members))
    return change(expression)


def rebased(expression: Expression, onto: Expression) -> Expression:
    """The expression with `onto` in place of the event."""

    def change(part: Expression) -> Expression:
        if not isinstance(part, Field):
            return part
        if not part.path:
            return onto
        if isinstance(onto, Field):
            return Field((*onto.path, *part.path))
        raise Unmapped("a field of a computed value cannot be translated")

    return rebuilt(expression, change)
