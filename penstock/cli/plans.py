"""The effects of documents on a server, before they are applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.bundle import STYLES
from penstock.cli.client import Client, NoServer, path_of
from penstock.cli.files import Found
from penstock.cli.output import exit_code, note, say, show_problems
from penstock.cli.revisions import show_entries
from penstock.cli.text import plural
from penstock.errors import Invalid, PenstockError, Problem

EFFECTS = {"keeps": "dim", "restarts": "yellow", "resets": "bold red"}


@dataclass(frozen=True)
class DocumentPlan:
    """The effect of applying one document."""

    file: str
    kind: str | None
    name: str | None
    action: str
    code: int = 0
    errors: list[Problem] = field(default_factory=list)
    plan: dict[str, Any] | None = None

    @property
    def resets(self) -> bool:
        """Whether applying the document requires `--accept-reset`."""
        return bool(self.plan and self.plan["resets"])


def plan_all(client: Client, documents: Sequence[Found]) -> Iterator[DocumentPlan]:
    """Plan each document, in order. New documents are validated together with all others."""
    judged = client.call("POST", "/validate", json=[document.raw for document in documents])["documents"]
    for document, analysis in zip(documents, judged, strict=True):
        about = (document.file, document.kind, document.name)
        try:
            yield _planned(client, document, analysis)
        except NoServer:
            raise
        except PenstockError as error:
            yield DocumentPlan(*about, "failed", exit_code(error), error.problems)


def _planned(client: Client, document: Found, analysis: dict[str, Any]) -> DocumentPlan:
    kind, name = document.kind, document.name
    errors = [Problem.model_validate(problem) for problem in analysis["errors"]]
    if errors or not document.addressable or kind is None or name is None:
        raise Invalid(
            *errors or [Problem(code="not_a_document", message="the document has no kind or no name")]
        )
    if client.find(kind, name) is None:
        return DocumentPlan(document.file, kind, name, "create")
    plan = client.call("POST", path_of(kind, name, "plan"), json={"metadata": {}, "spec": {}, **document.raw})
    refused = [Problem.model_validate(problem) for problem in plan["errors"]]
    # The document may refer to new documents that aren't saved yet; together, all of them are valid.
    if refused and any(problem.code != "unknown_reference" for problem in refused):
        raise Invalid(*refused)
    action = "update" if plan["changes"] or refused else "unchanged"
    return DocumentPlan(document.file, kind, name, action, plan=plan)


def show_plan(planned: DocumentPlan) -> None:
    """Show the action for a document, its changes, and their effect on each part of its flow."""
    style = STYLES.get(planned.action, "bold red")
    what = f"{(planned.kind or 'document').lower()} {planned.name or ''} ({planned.file})"
    say((f"{planned.action:<10}", style), what)
    show_problems(planned.errors, indent="  ")
    if planned.plan is None:
        return
    show_entries(planned.plan["changes"], indent="    ")
    if planned.plan["changes"]:
        show_steps(planned.plan["steps"])
    for dependent in planned.plan["dependents"]:
        if any(step["effect"] != "keeps" for step in dependent["steps"]):
            say(f"    {dependent['kind'].lower()} {dependent['name']}")
            show_steps(dependent["steps"], indent="      ")


def show_steps(steps: list[dict[str, Any]], indent: str = "    ") -> None:
    """The effects of an edit on each part of a flow, without unchanged parts."""
    for step in steps:
        if step["part"] == "policy" and step["effect"] == "keeps":
            continue
        again = f" (to rebuild the state: --from {step['from']})" if step["from"] else ""
        effect = (f"{indent}{step['effect']:<9}", EFFECTS[step["effect"]])
        say(effect, f"{step['part']} {step['id']}: {step['why']}{again}")


def show_plans(plans: Sequence[DocumentPlan]) -> None:
    """Show a one-line summary of all plans."""
    changed = sum(each.action in ("create", "update") for each in plans)
    resets = sum(each.resets for each in plans)
    asks = f", {plural(resets, 'document')} needs --accept-reset" if resets else ""
    note(f"{plural(changed, 'change')}{asks}, nothing was saved (plan)")
