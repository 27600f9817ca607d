"""Advice names only commands, options, variables and fields that exist.

Advice is followed to its end in `tests/api/test_advice.py`; here all of it is checked for its words.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

import penstock
from penstock.cli.commands import COMMANDS
from penstock.cli.main import app
from penstock.control.fleet.processes import WorkerStart
from penstock.control.monitor.attention import LATENCY_ADVICE, RULES
from penstock.control.monitor.snapshot import Attention, GoneWorker, ReaderPulse, SinkPulse
from penstock.settings import NOT_SETTINGS, load
from penstock.spark.heartbeat import SENTENCES
from penstock.specs.validation import parse
from tests.control.test_attention import AT, ERROR, MISSED, NOW, flow, found, stream, worker

ROOT = Path(penstock.__file__).parent
QUOTED = re.compile(r"`([^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
VARIABLE = re.compile(r"PENSTOCK_[A-Z_]+[A-Z]")
BARE = re.compile(rf"(?<![`\w./-])penstock ({'|'.join(sorted({words.split()[0] for words in COMMANDS}))})\b")


def texts(path: Path) -> Iterator[str]:
    """The strings of a module without its docstrings; what is filled in is 1, a name and a number."""
    tree = ast.parse(path.read_text())
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    documented = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_text(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if _is_text(part) else "1" for part in node.values)  # type: ignore[attr-defined]
        elif _is_text(node) and id(node) not in inner | documented:
            yield node.value  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


MODULES = sorted(path for path in ROOT.rglob("*.py") if "ui" not in path.relative_to(ROOT).parts)
TEXTS = [(str(path.relative_to(ROOT)), text) for path in MODULES for text in texts(path)]


def parsed(line: str) -> None:
    """Let the real command line parse a command, without running it.

    Options of `penstock` itself, such as `--install-completion`, act while they are parsed: they are not.
    """
    command: Any = typer.main.get_command(app)
    word, *rest = shlex.split(line)
    context = command.context_class(command, info_name=word)
    while isinstance(command, TyperGroup):
        assert not rest[0].startswith("-"), line
        word, command, rest = command.resolve_command(context, rest)
        context = command.context_class(command, info_name=word, parent=context)
    command.make_context(word, list(rest), parent=context.parent)


@cache
def options(module: str | None = None) -> set[str]:
    """The options of the commands of a module, or of all."""
    made = typer.Typer(add_completion=False)
    entries = {
        words: each for words, each in COMMANDS.items() if module in (None, each.function.split(":")[0])
    }
    for words, entry in entries.items():
        made.command(words)(entry.load())
    commands: Any = typer.main.get_command(made)
    found = commands.commands.values() if isinstance(commands, TyperGroup) else [commands]
    return {
        option for each in found for param in each.params for option in (*param.opts, *param.secondary_opts)
    }


def test_commands_in_texts_can_be_typed() -> None:
    lines = {quoted for _, text in TEXTS for quoted in QUOTED.findall(text) if quoted.startswith("penstock ")}
    assert {"penstock up", "penstock worker", "penstock start 1", "penstock catch-up 1 1"} <= lines
    for line in sorted(lines - {"penstock --install-completion", "penstock 1 1"}):  # see `all_advice`
        parsed(line)
    assert [text for _, text in TEXTS if BARE.search(text)] == [], "commands stand between backticks"


def test_options_in_texts_exist() -> None:
    ours = ("cli/", "api/", "control/", "engine/")
    named = {
        (path, option) for path, text in TEXTS if path.startswith(ours) for option in OPTION.findall(text)
    }
    assert ("control/documents/edits.py", "--accept-reset") in named
    known = {*options(), "--help", "--install-completion", "--line"}  # the last one is of a style sheet
    assert [each for each in sorted(named) if each[1] not in known] == []
    modules = {entry.function.split(":")[0] for entry in COMMANDS.values()}
    own = {
        (path, option)
        for path, option in named
        if (name := Path(path).stem) in modules and path == f"cli/{name}.py"
    }
    assert [each for each in sorted(own) if each[1] not in options(Path(each[0]).stem)] == []


def test_variables_in_texts_are_settings() -> None:
    named = {variable for _, text in TEXTS for variable in VARIABLE.findall(text)} - NOT_SETTINGS
    assert {"PENSTOCK_PORT", "PENSTOCK_ALLOW_PYTHON"} <= named
    values = {"PENSTOCK_ALLOW_PYTHON": "true", "PENSTOCK_PORT": "1", "PENSTOCK_CONFIG": ""}
    for variable in sorted(named):
        load({}, env={variable: values.get(variable, "x")}, cwd=Path("/nonexistent"))


SINKS = [SinkPulse("lake", "file", state, 0.0, 10, 3) for state in ("behind", "catching_up", "failing")]
INPUT = {"key": "Stream/orders.in", "id": "orders.in", "name": "orders.in"}


NO_MATCH = {
    "code": "no_matching_worker",
    "message": "no worker has the labels zone=a",
    "hint": "start one, as in `penstock worker --label zone=a`",
}


def all_advice() -> list[Attention]:
    """What every rule says, of each kind of flow and stream."""
    told: list[Attention] = []
    for kind in ("Pipeline", "Task", "Sink", "Source"):
        own = {"key": f"{kind}/orders", "kind": kind}
        told += found(flow(**own, status="failed", error=ERROR), flow(phase="backing_off", error=ERROR))
        told += found(flow(**own, reconnecting=True, error=ERROR))
        told += found(flow(**own, phase="waiting", waits_for=NO_MATCH))
        told += found(flow(**own, phase="stalled", failed_attempts=3, lag_events=9, error=ERROR))
        told += found(flow(**own, phase="stalled", stalled_since=AT, lag_events=9, lag_growing=True))
        for status in ("active", "paused", "stopped", "completed", "failed"):
            told += found(flow(**own, status=status, sinks=tuple(SINKS)))
        for status in ("paused", "stopped"):
            told += found(flow(**own, status=status, phase="idle", error=ERROR))
            told += found(flow(**own, status=status, phase="idle", error={**ERROR, "problems": [ERROR]}))
        told += found(
            flow(**own, lag_events=9),
            growing={own["key"]: AT},
            letters={own["key"]: (1, AT)},
            gone=(GoneWorker("w", 1, AT),),
        )
        for cause in LATENCY_ADVICE:
            told += found(flow(**own, latency={**MISSED, "cause": cause}))
    for about in ({}, INPUT):
        own_stream = stream(**about)
        lost = {own_stream.key: (7, AT)}
        told += found(streams=(own_stream,), lost=lost, restart=lost, unended=lost)
        reader = ReaderPulse("pipeline:orders:1", "Pipeline/orders", 0.0, 4_000, 9)
        for full in ("buffer_full", "disk_full"):
            told += found(streams=(stream(**about, full=full),))
            told += found(streams=(stream(**about, full=full, readers=(reader,)),))
    start = WorkerStart(1, "failed", NOW, 1, "no Java", "/logs/worker-1.log")
    told += found(workers=(worker(info={"ailment": SENTENCES["silent"]}),))
    told += [*found(free=0), *found(workers=()), *found(workers=(), uptime_s=5)]
    return told + found(workers=(), startup=(start,))


STREAM = {"kind": "Stream", "metadata": {"name": "raw"}, "spec": {}}
PIPELINE = {
    "kind": "Pipeline",
    "metadata": {"name": "orders"},
    "spec": {"source": {"type": "http"}, "sinks": [{"type": "drop"}]},
}


def test_every_rule_says_what_can_be_done() -> None:
    told = all_advice()
    codes = {"failed", "backing_off", "sink_behind", "sink_failing", "paused_with_error", "invalid"}
    codes |= {"lag_growing", "dead_letters", "worker_gone", "stream_dropping", "lost_restart", "backpressure"}
    codes |= {"transaction_unended", "latency_missed", "source_unreachable", "no_matching_worker"}
    codes |= {"worker_stuck", "stalled"}
    assert {each.code for each in told} == codes | {"stream_full", "disk_low", "no_worker"}
    assert len(RULES) == 19, "a new rule is asked here too"
    for each in told:
        for quoted in QUOTED.findall(each.advice):
            if quoted.startswith("penstock "):
                parsed(quoted)
                continue
            document = PIPELINE if each.id != "raw" else STREAM
            change = yaml.safe_load(quoted if ":" in quoted else quoted.replace(".", ": {") + ": 1}")
            parse({**document, "spec": {**document["spec"], **change}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "line", ["penstock nothing", "penstock sinks", "penstock start a --now", "penstock stream up"]
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|Missing"):
        parsed(line)
