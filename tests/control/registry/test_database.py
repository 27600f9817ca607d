"""Migrations, several processes, and processes that are killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select, text

from penstock.control.registry import Registry, database, migrations, tables
from penstock.errors import Conflict, Invalid
from tests.control.registry.kit import only_problem, stream

OPEN_AND_CREATE = """
import sys
from penstock.control.registry import Registry
print("ready", flush=True)
sys.stdin.readline()
registry = Registry.open(sys.argv[1])
registry.create({"kind": "Stream", "metadata": {"name": sys.argv[2]}})
"""

WRITE_FOREVER = """
import sys
from penstock.control.registry import Registry
registry = Registry.open(sys.argv[1])
registry.create({"kind": "Stream", "metadata": {"name": "s"}, "spec": {"n": 0}})
n = 0
while True:
    n += 1
    registry.update("Stream", "s", {"kind": "Stream", "metadata": {"name": "s"}, "spec": {"n": n}})
    print(n, flush=True)
"""


def python(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_registry_opens_again_with_what_it_held(registry_url: str) -> None:
    first = Registry.open(registry_url)
    created = first.create(stream("a"))
    second = Registry.open(registry_url)
    assert second.get("Stream", "a") == created
    first.close()
    assert second.update("Stream", "a", stream("a", {"n": 1})).revision == 2
    second.close()


def test_migrations_make_the_tables_that_the_code_uses(registry: Registry) -> None:
    with registry.engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []


def test_the_newest_step_is_known_without_alembic(registry_url: str) -> None:
    assert ScriptDirectory.from_config(migrations.configuration()).get_current_head() == migrations.HEAD
    Registry.open(registry_url).close()
    script = (
        "import sys; from penstock.control.registry import Registry\n"
        "Registry.open(sys.argv[1]).close(); print('alembic' in sys.modules)"
    )
    assert python(script, registry_url).communicate(timeout=60)[0] == "False\n"


def test_what_was_saved_before_it_could_run_waits_for_a_start(registry_url: str) -> None:
    engine = database.connect(registry_url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    saved = {
        "p": ("Pipeline", {}),
        "x": ("Sink", {"type": "drop", "stream": "s"}),
        "y": ("Sink", {"type": "drop"}),
        "z": ("Task", {"input": "s", "outputs": [{"stream": "s"}]}),
    }
    with database.writing(engine) as conn:
        config.attributes["connection"] = conn
        command.upgrade(config, "0001")
        for name, (kind, spec) in saved.items():
            for statement in (
                "INSERT INTO documents VALUES (:n, :k, :n, :n, 1, :n, :at, :at)",
                "INSERT INTO revisions VALUES (:n, 1, :d, 'create', :at)",
            ):
                values = {"n": name, "k": kind, "at": "2026-01-01 00:00:00", "d": json.dumps({"spec": spec})}
                conn.execute(text(statement), {key: v for key, v in values.items() if f":{key}" in statement})
        at = {"at": "2026-01-01 00:00:00"}
        state = "'p', 'p', 'paused', NULL, 'idle', NULL, '[]', NULL, 7, NULL, 1, '{\"batches\": 3}', :at"
        conn.execute(text(f"INSERT INTO flows VALUES ({state})"), at)
    engine.dispose()

    registry = Registry.open(registry_url)
    p = registry.get("Pipeline", "p").flow
    assert p is not None
    assert (p.status, p.epoch, p.running_revision, p.ops) == ("paused", 7, 1, {"batches": 3})
    assert registry.statuses() == {
        "Source": {},
        "Task": {"z": "stopped"},
        "Sink": {"x": "stopped"},
        "Pipeline": {"p": "paused"},
    }
    registry.close()


@pytest.mark.slow
def test_processes_that_open_a_fresh_database_at_once(registry_url: str) -> None:
    processes = [python(OPEN_AND_CREATE, registry_url, f"s{n}") for n in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    registry = Registry.open(registry_url)
    assert [record.id for record in registry.list("Stream").items] == ["s0", "s1", "s2", "s3"]
    registry.close()


@pytest.mark.slow
def test_a_killed_writer_leaves_a_registry_with_all_it_answered(registry_url: str) -> None:
    process = python(WRITE_FOREVER, registry_url)
    assert process.stdout is not None
    acknowledged = 0
    until = time.monotonic() + 1.0
    while time.monotonic() < until or acknowledged < 5:
        acknowledged = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.communicate()[0].split()
    acknowledged = int(rest[-1]) if rest else acknowledged

    registry = Registry.open(registry_url)
    record = registry.get("Stream", "s")
    assert record.document["spec"]["n"] in (acknowledged, acknowledged + 1)
    assert record.revision == record.document["spec"]["n"] + 1
    assert len(registry.revisions("Stream", "s")) == record.revision
    assert registry.last_event_id() == record.revision
    assert registry.update("Stream", "s", stream("s")).revision == record.revision + 1
    if registry_url.startswith("sqlite"):
        with registry.engine.connect() as conn:
            assert conn.scalar(text("PRAGMA integrity_check")) == "ok"
            assert conn.scalar(text("PRAGMA journal_mode")) == "wal"
    registry.close()


def test_a_failed_migration_leaves_nothing_behind(registry_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_index", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Registry.open(registry_url)
    registry = Registry.open(registry_url)
    with registry.engine.connect() as conn:
        assert conn.scalar(select(func.count()).select_from(tables.documents)) == 0
    registry.close()


def test_a_registry_of_a_later_version_is_refused(registry_url: str) -> None:
    registry = Registry.open(registry_url)
    with registry.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    registry.close()
    with pytest.raises(Conflict) as caught:
        Registry.open(registry_url)
    assert only_problem(caught.value).code == "registry_too_new"


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "no url"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        Registry.open(url)
    assert only_problem(caught.value).code == "unsupported_database"


def test_the_short_names_of_postgresql(postgres_database: str) -> None:
    for scheme in ("postgres://", "postgresql://"):
        registry = Registry.open(postgres_database.replace("postgresql+psycopg://", scheme))
        assert registry.list("Stream").total == 0
        registry.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    registry = Registry.open(f"sqlite:///{tmp_path}/r.db")
    registry.create(stream("a"))
    with registry.begin():
        began = time.monotonic()
        assert registry.get("Stream", "a").revision == 1
        assert time.monotonic() - began < 5
    registry.close()
