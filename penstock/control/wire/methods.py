"""Methods of a protocol as requests: arguments and results are JSON, encoded by their types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from penstock.errors import Invalid, Problem

P = TypeVar("P")
Ask = Callable[[str, bytes], bytes]
"""Sends the arguments of a method, and returns its result."""


@dataclass(frozen=True)
class Method:
    """A method of a protocol."""

    name: str
    signature: inspect.Signature
    arguments: Mapping[str, TypeAdapter[Any]]
    result: TypeAdapter[Any]

    def pack(self, *given: Any, **named: Any) -> bytes:
        """The arguments of a call, encoded as JSON."""
        bound = self.signature.bind(None, *given, **named).arguments
        packed = {
            name: self.arguments[name].dump_python(bound[name], mode="json") for name in list(bound)[1:]
        }
        return _ANY.dump_json(packed)

    def call(self, target: Any, body: bytes) -> bytes:
        """Call the method on an object with encoded arguments; Invalid if they don't match the signature."""
        try:
            given = _TABLE.validate_json(body)
            known = {name: self.arguments[name].validate_python(value) for name, value in given.items()}
            self.signature.bind(None, **known)
        except (ValidationError, KeyError, TypeError) as error:
            message = f"the arguments of '{self.name}' are not valid: {error}"
            raise Invalid(Problem(code="invalid_call", message=message)) from None
        return self.result.dump_json(getattr(target, self.name)(**known))


_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_TABLE: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


@functools.cache
def methods_of(protocol: Callable[..., object]) -> dict[str, Method]:
    """The methods of a protocol by name."""
    found = {}
    for name, function in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        hints = get_type_hints(function)
        result = TypeAdapter(hints.pop("return"))
        arguments = {each: TypeAdapter(hint) for each, hint in hints.items()}
        found[name] = Method(name, inspect.signature(function), arguments, result)
    return found


def proxy(protocol: Callable[..., P], ask: Ask) -> P:
    """An object with the methods of a protocol, each of which sends a request."""

    def method(each: Method) -> Callable[..., Any]:
        return lambda *given, **named: each.result.validate_json(ask(each.name, each.pack(*given, **named)))

    known = {name: staticmethod(method(each)) for name, each in methods_of(protocol).items()}
    return cast(P, type("Remote", (), known)())
