"""Failures that keep their code on the way through the JVM.

What is raised in one of Spark's Python processes reaches the engine as the text of a traceback inside a Java
exception. The text of a `Fault` begins with its code, so it can be found there again.
"""

from __future__ import annotations

import re

from penstock.errors import Fatal, Problem

NAME = "penstock.connectors.faults.Fault"
_TOLD = re.compile(re.escape(NAME) + r": \[(\w+)\] (.+)")


class Fault(Fatal):
    """Trying again cannot help, and the code says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.problem = Problem(code=code, message=message)

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return Fault, (self.problem.code, self.problem.message)


def fault_text(code: str, message: str) -> str:
    """What SQL has to raise so that it is found to be a fault."""
    return f"{NAME}: [{code}] {message}"


def fault_in(text: str) -> Problem | None:
    """The problem of the fault that a text of Spark tells of."""
    found = _TOLD.search(text)
    return Problem(code=found[1], message=found[2].strip()) if found else None
