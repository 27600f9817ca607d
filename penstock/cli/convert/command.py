"""`penstock convert`: converts a configuration of another system into Penstock documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli.files import STDIN, read_bytes
from penstock.cli.options import Json
from penstock.cli.output import FAILED, Usage, note, show_json
from penstock.cli.text import plural
from penstock.errors import Problem

Name = Literal["deltaforge", "bento", "padas", "kafka-connect"]


def convert(
    file: Annotated[
        str, typer.Argument(help="YAML, JSON or properties of the other system; `-` reads standard input.")
    ],
    from_: Annotated[
        Name | None,
        typer.Option(
            "--from", help="The other system. Default: detected from the input.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the documents into this file.", show_default=False)
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            help="Columns of the events as Spark DDL. With it, mappings become SQL.",
            show_default=False,
        ),
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Exit with 0 even if the documents behave differently.")
    ] = False,
    json: Json = False,
) -> None:
    """Convert a pipeline of DeltaForge, Bento, Redpanda Connect, PADAS or Kafka Connect into documents.

    The documents are written to standard output. Settings without an equivalent are reported with their line:
    on standard error, and as a comment in the document. Plain-text passwords become variables.

    Exit code 0: everything was mapped. 1: a finding changes the behavior (`--lenient` makes it 0); the
    documents are written anyway. 2: wrong usage. 3: the input is not readable, or its system is unknown.
    """
    from penstock.cli.convert.render import to_commented_yaml
    from penstock.cli.convert.systems import SYSTEMS, convert_text

    text = _text(file)
    name = "converted" if file == STDIN else Path(file).name.split(".")[0]
    result = convert_text(text, name, from_, schema)
    written = to_commented_yaml(
        result.documents, result.findings, f"converted from {SYSTEMS[result.system].title}"
    )
    if out is not None:
        _write(out, written)
    if json:
        show_json(
            {
                "from": result.system,
                "changed": result.changed,
                "documents": result.documents,
                "findings": [each.plain() for each in result.findings],
            }
        )
    elif out is None:
        print(written, end="")
    if not json:
        for each in result.findings:
            style = "bold yellow" if each.level == "change" else "bold cyan"
            where = f" {each.path}:" if each.path else ""
            note((f"{file}:{each.line}: {each.level}[{each.code}]", style), f"{where} {each.message}")
            if each.hint:
                note(("  hint:", "cyan"), f" {each.hint}")
        changes = sum(each.level == "change" for each in result.findings)
        balance = f"{plural(len(result.documents), 'document')}, {plural(changes, 'change')}"
        notes = plural(len(result.findings) - changes, "note")
        note((f"{balance}, {notes}", "bold yellow" if changes else "bold green"))
    if result.changed and not lenient:
        raise typer.Exit(FAILED)


def _text(file: str) -> str:
    try:
        return read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        message = f"{file} is not text in UTF-8"
        raise Usage(Problem(code="unreadable_file", message=message, hint="check the path")) from None


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {out}: {error.strerror}"
        raise Usage(Problem(code="unwritable_file", message=message, hint="check the path")) from None
