"""`penstock run`: one pipeline in the foreground, without a server or a registry."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from penstock.cli.files import Found, read_files
from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import FAILED, Usage, note, show_problems
from penstock.cli.progress import Plain, Summary, view
from penstock.cli.signals import on_stop
from penstock.errors import Invalid, Problem, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.flow import Flow
    from penstock.settings import Settings

POLL_S = 0.2


def run(
    file: Annotated[
        str, typer.Argument(help="A pipeline, with what it refers to; `-` reads standard input.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Which pipeline of several.", show_default=False)
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget how far earlier runs came.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run one pipeline until its input ends or Ctrl-C; a later run goes on where this one stopped.

    Progress goes to standard error, so that events of a console sink can be piped. With --json it goes to
    standard output instead, one object per line, the last one of type `summary`.
    """
    settings = settled(load_settings(home=home))
    project = choose(read_files([file]), name, settings)
    project.resolve()  # before Spark is started: most mistakes can be told at once
    with view(as_json=json) as shown:
        summary = _run(project, settings, shown, fresh)
    shown.end(summary)
    if summary.outcome == "failed":
        raise typer.Exit(FAILED)


@dataclass(frozen=True)
class Project:
    """A pipeline and the documents beside it."""

    pipeline: Mapping[str, Any]
    documents: Sequence[Any]
    settings: Settings

    def resolve(self) -> Flow:
        """The flow of the pipeline; Invalid with every problem that can be seen without Spark."""
        from penstock.engine.analysis import analyse, offline
        from penstock.engine.flow import resolve_flow

        lookup, known = offline(self.documents)
        defaults = self.settings.defaults.model_dump()
        analysis = analyse(self.pipeline, lookup, known, defaults)
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        return resolve_flow(self.pipeline, lookup, defaults)

    def judge(self, spark: SparkSession) -> list[Problem]:
        """What to be warned of; Invalid with every problem that Spark finds."""
        from penstock.engine.analysis import analyse, offline

        lookup, known = offline(self.documents)
        analysis = analyse(self.pipeline, lookup, known, self.settings.defaults.model_dump(), spark)
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        return analysis.warnings


def choose(found: Sequence[Found], name: str | None, settings: Settings) -> Project:
    """The one pipeline among documents, or the one of that name."""
    from penstock.specs.documents import derive_id

    pipelines = [document for document in found if document.kind == "Pipeline"]
    names = [document.name or "" for document in pipelines]
    if name is not None:
        chosen = [p for p in pipelines if derive_id(p.name or "") == derive_id(name)]
        if not chosen:
            hint = did_you_mean(name, names) if names else None
            message = f"there is no pipeline '{name}' in {found[0].file}"
            raise Usage(Problem(code="unknown_pipeline", message=message, hint=hint))
    else:
        chosen = pipelines
    if not chosen:
        _refuse_others(found)
    if len(chosen) > 1:
        hint = f"choose with --name: {', '.join(names)}" if name is None else "remove one of them"
        raise Usage(Problem(code="several_pipelines", message="there is more than one pipeline", hint=hint))
    return Project(chosen[0].raw, [document.raw for document in found], settings)


def _refuse_others(found: Sequence[Found]) -> NoReturn:
    """Tell why there is no pipeline: a document may only have been meant to be one."""
    from penstock.specs.validation import parse

    problems: list[Problem] = []
    for document in found:
        try:
            parse(document.raw)
        except Invalid as error:
            problems += error.problems
    raise Invalid(*problems or [Problem(code="no_pipeline", message="there is no document of kind Pipeline")])


def _run(project: Project, settings: Settings, shown: Plain, fresh: bool) -> Summary:
    from penstock.cli.lock import Lock
    from penstock.cli.sessions import spark_session
    from penstock.connectors.paths import is_local, local_path, qualified
    from penstock.connectors.storage import storage_for
    from penstock.control.lifecycle import Keeper

    flow = project.resolve()
    directory = qualified(f"{settings.checkpoint_url.rstrip('/')}/{flow.id}/run")
    checkpoint = f"{directory}/{flow.position_key}"
    local = Path(local_path(directory)) if is_local(directory) else settings.home / "runs" / flow.id
    log = settings.home / "logs" / f"run-{flow.id}.log"
    shown.step("starting Spark…")
    with Lock(local / "lock", f"pipeline '{flow.id}'"), spark_session(settings, log) as spark:
        shown.step("checking the pipeline…")
        show_problems(project.judge(spark), level="warning")
        storage = storage_for(checkpoint, spark)
        resumed = storage.exists(checkpoint)
        if fresh:
            storage.remove(checkpoint)
            note(
                "earlier progress deleted: all is read and delivered again"
                if resumed
                else "no earlier progress"
            )
            resumed = False
        keeper = Keeper(
            flow.id, project.resolve, spark, lambda _: checkpoint, drain_s=settings.worker.drain_ms / 1000
        )
        on_stop(keeper.drain)
        started = time.monotonic()
        keeper.start()
        while not keeper.ended:
            shown.update(flow.id, keeper.state)
            keeper.join(POLL_S)
        return Summary.of(flow.id, keeper.state, time.monotonic() - started, resumed)


COMMANDS = (run,)
