"""Fields of components that name a file or a server: marked in the spec, so that the policy finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel

Kind = Literal["path", "files", "url", "address", "database", "options", "format", "listen"]


@dataclass(frozen=True)
class Reach:
    """The mark of a field that names a file or a server, with the kind of name."""

    kind: Kind


FilePath = Annotated[str, Reach("path")]
"""A local file or directory, or a URL that Spark or a table format opens like one."""

FilesPath = Annotated[str, Reach("files")]
"""A file to read, or the files of a directory or a glob."""

ServerUrl = Annotated[str, Reach("url")]
"""A URL; the flow connects to its host."""

ServerAddress = Annotated[str, Reach("address")]
"""`host`, `host:port`, or several of them separated by commas."""

DatabaseUrl = Annotated[str, Reach("database")]
"""The URL of a database: a server, or a local file; options of its client follow the `?`."""

ClientOptions = Annotated[dict[str, str], Reach("options")]
"""Options of a client library, some of which may name files and servers."""

SparkFormat = Annotated[str, Reach("format")]
"""The name of a Spark data source."""

ListenAddress = Annotated[str, Reach("listen")]
"""An address that the flow listens on, without connecting to anything."""


@dataclass(frozen=True)
class Reached:
    """A text in a spec that names a resource outside of Penstock."""

    kind: Kind
    field: str
    """The path of the text in the spec, such as `security.tls.ca_file`."""
    text: str
    option: str = ""
    """The name of the option, if the text is an option of a client."""


def reached(spec: BaseModel, at: str = "") -> Iterator[Reached]:
    """All resources outside of Penstock that a spec and its nested specs name; `at` is its path."""
    for name, info in type(spec).model_fields.items():
        place = f"{at}.{info.alias or name}" if at else info.alias or name
        value, kind = getattr(spec, name), mark_of(type(spec), name)
        if kind is not None and isinstance(value, str):
            yield Reached(kind, place, value)
        else:
            yield from _found(value, _inner_mark(type(spec), name), place)


@cache
def mark_of(model: type[BaseModel], name: str) -> Kind | None:
    """The mark of a model's field, or of the texts inside it."""
    info = model.model_fields[name]
    own = [mark.kind for mark in info.metadata if isinstance(mark, Reach)]
    return own[-1] if own else _inner_mark(model, name)  # the last mark was set at the field itself


@cache
def marks_in(model: type[BaseModel]) -> frozenset[Kind]:
    """The marks of all fields of a model, including nested models."""
    own = {mark for name in model.model_fields if (mark := mark_of(model, name)) is not None}
    nested = [each for info in model.model_fields.values() for each in _models(info.annotation)]
    return frozenset(own).union(*map(marks_in, nested))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


@cache
def _inner_mark(model: type[BaseModel], name: str) -> Kind | None:
    """The mark of the texts in a list or a mapping."""
    info = model.model_fields[name]
    if any(mark == Reach("options") for mark in info.metadata):
        return "options"
    return next((mark.kind for mark in _marks(info.annotation)), None)


def _marks(annotation: Any) -> Iterator[Reach]:
    yield from (mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Reach))
    for inner in get_args(annotation):
        yield from _marks(inner)


def _found(value: Any, kind: Kind | None, place: str) -> Iterator[Reached]:
    if isinstance(value, BaseModel):
        yield from reached(value, place)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if kind == "options" and isinstance(inner, str):
                yield Reached(kind, f"{place}.{key}", inner, str(key))
            else:
                yield from _found(inner, kind, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _found(inner, kind, f"{place}[{i}]")
    elif kind is not None and isinstance(value, str):
        yield Reached(kind, place, value)
