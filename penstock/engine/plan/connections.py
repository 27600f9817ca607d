"""Connection tests of connectors, in documents and in a form that is still being edited."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from penstock.connectors.base import Sink, Source
from penstock.connectors.probe import Probe
from penstock.engine.runtime.failures import failure_of
from penstock.errors import Invalid, NotFound, PenstockError, Problem, did_you_mean
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.secrets import Lookup
from penstock.specs.catalog import catalog
from penstock.specs.problems import problems_of
from penstock.specs.templated import within
from penstock.specs.templates import template_fields
from penstock.specs.variables import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ConnectorRole = Literal["source", "sink"]


@dataclass(frozen=True)
class Declared:
    """A connector in a document."""

    role: ConnectorRole
    path: str
    spec: Mapping[str, Any]

    @property
    def type(self) -> str:
        """The type of the connector, as written in the document."""
        return str(self.spec.get("type"))


def connectors_in(raw: Mapping[str, Any]) -> Iterator[Declared]:
    """The inline connectors of a document; those it refers to are in separate documents."""
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        return
    found: list[tuple[ConnectorRole, str, Any]] = []
    if raw.get("kind") == "Source":
        found = [("source", "spec", spec)]
    elif raw.get("kind") == "Sink":
        found = [("sink", "spec", spec)]
    elif raw.get("kind") == "Pipeline":
        sinks = spec.get("sinks")
        found = [("source", "spec.source", spec.get("source"))]
        found += [
            ("sink", f"spec.sinks[{i}]", each)
            for i, each in enumerate(sinks if isinstance(sinks, list) else [])
        ]
    for role, path, each in found:
        if isinstance(each, Mapping) and "type" in each:
            yield Declared(role, path, each)


def probe_connector(
    role: ConnectorRole,
    spec: Mapping[str, Any],
    site: Site,
    spark: SparkSession,
    environment: Mapping[str, str] | None = None,
    lookup: Lookup = lambda *_: None,
) -> Probe:
    """Test the connection of a connector. The problems of an invalid spec are part of the result.

    Fields that are not the connector's own, such as `required` of a sink, are ignored.
    """
    try:
        component = connector_of(role, spec, site.policy, environment, lookup)
        site.policy.require(component)
    except PenstockError as error:
        return Probe(problems=error.problems)
    try:
        return component.probe(spark.newSession(), site)
    except Exception as error:  # third-party connectors may raise anything
        return Probe(problems=[failure_of(error).problem])


def connector_of(
    role: ConnectorRole,
    spec: Mapping[str, Any],
    policy: Policy,
    environment: Mapping[str, str] | None = None,
    lookup: Lookup = lambda *_: None,
) -> Source | Sink:
    """The connector of a spec; raises `NotFound` for an unknown type, or `Invalid` with all problems."""
    classes = catalog(role).classes
    kind = str(spec.get("type"))
    if kind not in classes:
        message = f"there is no {role} of type '{kind}'"
        raise NotFound(Problem(code="unknown_type", message=message, hint=did_you_mean(kind, classes)))
    cls = classes[kind]
    variables = os.environ if environment is None else environment
    templates = within(template_fields(cls))
    resolved, problems = resolve(
        dict(spec), variables, policy.allows_variable, reads=policy.reads(lookup), templates=templates
    )
    if problems:
        raise Invalid(*problems)
    own = {field.alias or name for name, field in cls.model_fields.items()}
    try:
        made = cls.model_validate({name: value for name, value in resolved.items() if name in own})
    except ValidationError as error:
        raise Invalid(*problems_of(error, cls)) from None
    assert isinstance(made, Source | Sink)
    return made
