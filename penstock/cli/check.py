"""`penstock check`: tests the connections of documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.client import connect
from penstock.cli.files import Found, read_files
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import FAILED, note, show_json, show_problems
from penstock.cli.sessions import starting_spark
from penstock.cli.text import plural
from penstock.errors import Problem
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.connectors.probe import Probe
    from penstock.engine.plan.connections import Declared


@dataclass(frozen=True)
class Checked:
    """A connector of a document, and the result of its connection test."""

    document: Found
    connector: Declared
    probe: Probe

    @property
    def problems(self) -> list[Problem]:
        """The problems found, with paths in the document."""
        where = self.connector.path
        return [
            each.model_copy(update={"path": f"{where}.{each.path}" if each.path else where})
            for each in self.probe.problems
        ]

    def plain(self) -> dict[str, Any]:
        """The result in the form of `--json`."""
        return {
            "file": self.document.file,
            "kind": self.document.kind,
            "name": self.document.name,
            "path": self.connector.path,
            "type": self.connector.type,
            "checked": self.probe.checked,
            "problems": [problem.model_dump() for problem in self.problems],
            "offers": self.probe.offers,
        }


def check(
    files: Annotated[list[str], typer.Argument(help="Files or directories; `-` reads standard input.")],
    server: Annotated[
        str | None,
        typer.Option("--server", help="Test connections from a worker of this server.", show_default=False),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Test the connections of all sources and sinks in documents without changing anything."""
    documents = read_files(files)
    checked = (
        list(_by_server(documents, server)) if server else _here(documents, settled(load_settings(home=home)))
    )
    failed = any(one.problems for one in checked)
    if json:
        show_json({"ok": not failed, "connectors": [one.plain() for one in checked]})
    else:
        _show(checked)
    if failed:
        raise typer.Exit(FAILED)


def _declared(documents: Sequence[Found]) -> Iterator[tuple[Found, Declared]]:
    from penstock.engine.plan.connections import connectors_in

    for document in documents:
        if isinstance(document.raw, Mapping):
            for connector in connectors_in(document.raw):
                yield document, connector


def _here(documents: Sequence[Found], settings: Settings) -> list[Checked]:
    from penstock.engine.plan.analysis import offline
    from penstock.engine.plan.connections import probe_connector
    from penstock.engine.plan.declared_site import declared_site
    from penstock.policy import Policy

    lookup, _ = offline([document.raw for document in documents])
    policy = Policy.of(settings, all_variables=True)
    site = declared_site({}, lookup, settings.defaults.model_dump(), policy)
    found = list(_declared(documents))
    if not found:
        return []
    note("starting Spark…")
    with (
        starting_spark(settings) as spark,
        spark.session(settings.home / "logs" / "check.log") as session,
    ):
        return [
            Checked(document, each, probe_connector(each.role, each.spec, site, session, lookup=lookup))
            for document, each in found
        ]


def _by_server(documents: Sequence[Found], server: str) -> Iterator[Checked]:
    from penstock.connectors.probe import Probe

    client = connect(server)
    for document, each in _declared(documents):
        body = {"role": each.role, "spec": dict(each.spec)}
        answer = client.call("POST", f"/connectors/{each.type}/check", json=body)
        yield Checked(document, each, Probe.model_validate(answer))


def _show(checked: Sequence[Checked]) -> None:
    for one in checked:
        title = f"{one.document.file}: {one.document.title}, {one.connector.role} '{one.connector.type}'"
        if one.problems:
            note((title, "bold"))
            show_problems(one.problems, indent="  ")
        elif not one.probe.checked:
            note(f"{title}: no connection test available")
        else:
            note(title, (": ok", "green"))
            for name, offered in one.probe.offers.items():
                note(f"  {name}: {', '.join(offered[:10])}{', …' if len(offered) > 10 else ''}")
    problems = sum(len(one.problems) for one in checked)
    balance = f"{plural(len(checked), 'connection')}, {plural(problems, 'problem')}"
    note((balance, "bold red" if problems else "bold green"))
