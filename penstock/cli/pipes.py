"""Standard input and output of `penstock run`, each of which can have only one user."""

from __future__ import annotations

from penstock.cli.output import Usage
from penstock.engine.plan.flow import Flow
from penstock.errors import Problem


def require_free_pipes(flow: Flow, *, document_piped: bool, as_json: bool) -> None:
    """Reject a flow whose connectors need standard input or output while it is used for something else."""
    problems = []
    if flow.source.component.piped and document_piped:
        message = "the document was read from standard input, but its stdin source needs standard input"
        hint = "save the document in a file, and pipe the events into `penstock run FILE`"
        problems.append(Problem(code="stdin_taken", message=message, path="spec.source", hint=hint))
    piped = [i for i, sink in enumerate(flow.sinks) if sink.component.piped]
    if piped and as_json:
        message = "--json writes progress to standard output, which the stdout sink needs"
        hint = "omit --json: progress then goes to standard error"
        path = f"spec.sinks[{piped[0]}]"
        problems.append(Problem(code="stdout_taken", message=message, path=path, hint=hint))
    if len(piped) > 1:
        message, path = "two sinks write to standard output", f"spec.sinks[{piped[1]}]"
        problems.append(Problem(code="stdout_taken", message=message, path=path, hint="keep one of them"))
    if problems:
        raise Usage(*problems)
