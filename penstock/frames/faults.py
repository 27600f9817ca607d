"""Failures that keep their code when they pass through the JVM.

An error raised in one of Spark's Python processes reaches the engine as the text of a traceback inside a Java
exception. The text of a `Fault` begins with its code, so that it can be found in that text.
"""

from __future__ import annotations

import re

from penstock.errors import Fatal, Problem

NAME = "penstock.frames.faults.Fault"
_TOLD = re.compile(re.escape(NAME) + r": \[(\w+)\] (.+)")


class Fault(Fatal):
    """A failure that a retry cannot fix, with a code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.problem = Problem(code=code, message=message)

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return Fault, (self.problem.code, self.problem.message)


def fault_text(code: str, message: str) -> str:
    """The text that SQL has to raise so that it is recognized as a fault."""
    return f"{NAME}: [{code}] {message}"


def fault_in(text: str) -> Problem | None:
    """The problem of the fault in an error text of Spark."""
    found = _TOLD.search(text)
    return Problem(code=found[1], message=found[2].strip()) if found else None
