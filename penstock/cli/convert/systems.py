"""The systems whose configurations can be converted, and the detection of the system of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.cli.convert import padas
from penstock.cli.convert.bento import config as bento
from penstock.cli.convert.deltaforge import config as deltaforge
from penstock.cli.convert.draft import Draft, Finding
from penstock.cli.convert.kafka_connect import config as kafka_connect
from penstock.cli.convert.language.steps import columns_of
from penstock.cli.convert.located import Node, read_located
from penstock.cli.convert.values import document_name
from penstock.cli.output import Usage
from penstock.errors import Invalid, Problem, did_you_mean


@dataclass(frozen=True)
class System:
    """A foreign system: how its documents are detected and converted."""

    title: str
    is_one: Callable[[Node], bool]
    convert: Callable[[Draft, str], None]


SYSTEMS = {
    "deltaforge": System("DeltaForge", deltaforge.is_deltaforge, deltaforge.convert),
    "kafka-connect": System("Kafka Connect", kafka_connect.is_connector, kafka_connect.convert),
    "bento": System("Bento or Redpanda Connect", bento.is_bento, bento.convert),
    "padas": System("PADAS", padas.is_padas, padas.convert),
}


@dataclass(frozen=True)
class Converted:
    """The result of a conversion."""

    system: str
    documents: list[dict[str, Any]]
    findings: list[Finding]

    @property
    def changed(self) -> bool:
        """Whether the documents behave differently from the input."""
        return any(each.level == "change" for each in self.findings)


def convert_text(text: str, name: str, system: str | None = None, schema: str | None = None) -> Converted:
    """Convert a foreign configuration into documents. `name` is used where the input has no name.

    Raises `Unreadable` if the text is neither YAML nor JSON, and `Invalid` if it is of no known system.
    """
    roots = read_located(text)
    if not roots:
        raise Invalid(Problem(code="no_documents", message="the input is empty"))
    if system is not None and system not in SYSTEMS:
        message, hint = f"'{system}' is not a known system", did_you_mean(system, SYSTEMS)
        raise Usage(Problem(code="unknown_system", message=message, hint=hint))
    if schema is not None:
        _check(schema)
    found = system or _detected(roots)
    documents: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for number, root in enumerate(roots):
        if not root.is_map and not (root.is_list and found == "padas"):
            message = (
                f"line {root.line}: a configuration must be a mapping, not a {type(root.value).__name__}"
            )
            raise Invalid(Problem(code="not_a_configuration", message=message))
        draft = Draft(root, schema, first=len(documents))
        suffix = f"-{number + 1}" if number else ""
        SYSTEMS[found].convert(draft, document_name(name + suffix))
        draft.check()
        documents += draft.documents
        findings += draft.findings()
    return Converted(found, documents, findings)


def _check(schema: str) -> None:
    try:
        columns_of(schema)
    except Invalid as error:
        raise Usage(*error.problems) from None


def _detected(roots: Sequence[Node]) -> str:
    for name, system in SYSTEMS.items():
        if any(system.is_one(root) for root in roots):
            return name
    titles = ", ".join(f"{system.title} ({name})" for name, system in SYSTEMS.items())
    message = "not the configuration of a known system"
    raise Invalid(
        Problem(code="unknown_format", message=message, hint=f"known systems: {titles}; choose with --from")
    )
