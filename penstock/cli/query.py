"""`penstock query`: SQL over streams."""

from __future__ import annotations

import csv as csvs
import json as jsons
import sys
import uuid
from contextlib import suppress
from typing import Annotated, Any

import typer

from penstock.cli.client import connect
from penstock.cli.options import Json, Server
from penstock.cli.output import Usage, note, show_json, show_table
from penstock.cli.text import plural
from penstock.errors import PenstockError, Problem


def query(
    sql: Annotated[
        str, typer.Argument(help="One SELECT; tables are the ids of streams. `-` reads standard input.")
    ],
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows to show.")] = 1000,
    timeout_ms: Annotated[
        int,
        typer.Option(
            "--timeout-ms", min=1, max=600_000, help="Cancel the query after this many milliseconds."
        ),
    ] = 30_000,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Query the events of streams with Spark SQL, read-only.

    Ctrl-C cancels the query.
    """
    if csv and json:
        raise Usage(Problem(code="exclusive_options", message="--csv and --json can't be combined"))
    text = sys.stdin.read() if sql == "-" else sql
    body = {"sql": text, "limit": limit, "timeout_ms": timeout_ms, "id": uuid.uuid4().hex}
    client = connect(server, answer_s=timeout_ms / 1000 + 90)
    try:
        found = client.call("POST", "/query", json=body)
    except KeyboardInterrupt:
        with suppress(PenstockError):  # the query may have ended in the meantime
            client.call("DELETE", f"/query/{body['id']}")
        raise
    names = [column["name"] for column in found["columns"]]
    if json:
        show_json(found)
        return
    if csv:
        writer = csvs.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(value, null="") for value in row] for row in found["rows"])
    else:
        show_table(names, ([_cell(value, null="NULL") for value in row] for row in found["rows"]))
    more = f", more rows: --limit {limit}" if found["truncated"] else ""
    note(f"{plural(len(found['rows']), 'row')} in {found['ms'] / 1000:.1f} s{more}")


def _cell(value: Any, null: str) -> str:
    if value is None:
        return null
    return value if isinstance(value, str) else jsons.dumps(value, ensure_ascii=False)
