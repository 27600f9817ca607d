"""Quick commands import no library that takes long, and the table of commands says what the commands say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import getdoc
from pathlib import Path
from threading import Thread

import pytest

from penstock.cli.commands import COMMANDS, GROUPS
from penstock.specs.catalog import ROLES, Role
from tests.cli.commands import PATIENCE_S, quiet_environment

HEAVY = {
    "alembic",
    "fastapi",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "sqlalchemy",
    "sqlglot",
    "uvicorn",
}

RUN = """
import json, sys
from pathlib import Path
from penstock.cli.main import main
file, *sys.argv[1:] = sys.argv[1:]
try:
    main()
finally:
    Path(file).write_text(json.dumps(sorted(sys.modules)))
"""


def imported(directory: Path, *arguments: str, code: int = 0, **variables: str) -> set[str]:
    """The top-level modules that a command imports; it has to end with this exit code."""
    modules = directory / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(modules), *arguments],
        cwd=directory,
        env={**quiet_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return {name.partition(".")[0] for name in json.loads(modules.read_text())}


@contextmanager
def served(answer: object) -> Iterator[str]:
    """The URL of a server that has one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_has_the_first_line_of_each_command(name: str) -> None:
    entry = COMMANDS[name]
    assert entry.help == (getdoc(entry.load()) or "").partition("\n")[0]
    assert " " not in name or name.split(" ")[0] in GROUPS


@pytest.mark.parametrize("arguments", ["--help", "-h", "stream --help"])
def test_help_imports_no_command(arguments: str, tmp_path: Path) -> None:
    assert not imported(tmp_path, *arguments.split()) & {*HEAVY, "httpx", "yaml"}


def test_the_modules_of_all_commands_import_nothing_heavy() -> None:
    script = "import sys; from penstock.cli.main import commands; list(commands()); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {name.partition(".")[0] for name in told.split()} & {*HEAVY, "httpx"}


@pytest.mark.parametrize("name", ["get", "up", "run", "test", "stream verify"])
def test_help_of_a_command_imports_nothing_heavy(name: str, tmp_path: Path) -> None:
    assert not imported(tmp_path, *name.split(), "--help") & {*HEAVY, "httpx"}


def test_version_imports_nothing_heavy(tmp_path: Path) -> None:
    assert not imported(tmp_path, "version") & {*HEAVY, "httpx"}


def test_a_client_imports_nothing_heavy(tmp_path: Path) -> None:
    sink = {"name": "lake", "spec": {"type": "file"}, "status": None, "phase": None, "revision": 1}
    sink |= {"updated_at": "2026-01-01T00:00:00Z", "metadata": {}}
    with served({"items": [sink], "total": 1}) as url:
        assert not imported(tmp_path, "get", "sinks", "--server", url) & HEAVY
        assert not imported(tmp_path, "get", "sinks", "-o", "yaml", "--server", url) & HEAVY


def test_quick_validation_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(
        "kind: Stream\nmetadata: {name: orders}\n---\n"
        "kind: Pipeline\nmetadata: {name: shop}\n"
        "spec:\n"
        "  source: {type: generate, rate: 1}\n"
        "  processors: [{type: filter, where: seq > 1}, {type: mask, fields: [{field: a, method: hash}]}]\n"
        "  sinks: [{type: stream, stream: orders}, {type: file, path: out, format: json}]\n"
    )
    assert not imported(tmp_path, "validate", "--quick", "all.yaml") & {*HEAVY, "httpx", "structlog"}
    (tmp_path / "bad.yaml").write_text("kind: Sink\nmetadata: {name: lake}\nspec: {type: fiel}\n")
    assert not imported(tmp_path, "validate", "--quick", "bad.yaml", code=3) & HEAVY


@pytest.mark.parametrize("role", ROLES)
def test_the_catalogue_of_components_imports_nothing_heavy(role: Role) -> None:
    script = f"import sys; from penstock.specs.catalog import catalog; catalog({role!r}); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {name.partition(".")[0] for name in told.split()} & {*HEAVY, "httpx"}


def test_the_completion_of_a_shell_imports_nothing_heavy(tmp_path: Path) -> None:
    for line in ("penstock st", "penstock stream ", "penstock run --"):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        assert not imported(tmp_path, _PENSTOCK_COMPLETE="complete_bash", **words) & {*HEAVY, "httpx"}
