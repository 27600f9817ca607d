"""Fewer calls to the JVM: a cache for the classes that py4j has found."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


def remember_classes() -> None:
    """Make py4j cache the packages, classes and static methods that it has found.

    Without this, each dot in `jvm.org.apache.spark…` is a separate call, and a call for a package makes Java
    search all jars for a class with that name. Planning a small flow takes about a thousand such calls.
    """
    for view in (JVMView, JavaPackage, JavaClass):
        if not hasattr(view.__getattr__, "asks"):
            view.__getattr__ = _remembering(view.__getattr__)


def _remembering(ask: Any) -> Any:
    def find(self: Any, name: str) -> Any:
        found = ask(self, name)
        if isinstance(found, JavaPackage | JavaClass | JavaMember):  # never the value of a static field
            self.__dict__[name] = found
        return found

    find.asks = ask  # type: ignore[attr-defined]
    return find
