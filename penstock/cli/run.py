"""`penstock run`: one flow in the foreground, without a server or a registry."""

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

    from penstock.connectors.base import Site
    from penstock.engine.flow import Flow
    from penstock.settings import Settings

POLL_S = 0.2

LIFE = "run"
"""The life of everything that has no registry to count its lives."""


def run(
    file: Annotated[
        str, typer.Argument(help="What is to run, with what it refers to; `-` reads standard input.")
    ],
    name: Annotated[str | None, typer.Option("--name", help="Which of several.", show_default=False)] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget how far earlier runs came.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run one pipeline until its input ends or Ctrl-C; a later run goes on where this one stopped.

    A file without a pipeline may hold a task, or a source or sink that is bound to a stream, instead. Streams
    are kept in the home directory, apart from those of a server there.

    Progress goes to standard error, so that events of a console sink can be piped. With --json it goes to
    standard output instead, one object per line, the last one of type `summary`.
    """
    from penstock.cli.logs import configure

    settings = settled(load_settings(home=home))
    configure(settings.log)  # what scripts print is no event of a console sink
    project = choose(read_files([file]), name, settings)
    project.resolve()  # before Spark is started: most mistakes can be told at once
    with view(as_json=json) as shown:
        summary = _run(project, settings, shown, fresh)
    shown.end(summary)
    if summary.outcome == "failed":
        raise typer.Exit(FAILED)


@dataclass(frozen=True)
class Project:
    """What is to run, and the documents beside it."""

    chosen: Mapping[str, Any]
    documents: Sequence[Any]
    settings: Settings

    @property
    def key(self) -> str:
        """Its name among the runs of a home directory."""
        from penstock.specs.documents import derive_id

        kind, id = str(self.chosen["kind"]), derive_id(str(self.chosen["metadata"]["name"]))
        return id if kind == "Pipeline" else f"{kind.lower()}.{id}"

    @property
    def checkpoints(self) -> str:
        """Where its progress is kept."""
        from penstock.connectors.paths import qualified

        return qualified(f"{self.settings.checkpoint_url.rstrip('/')}/{self.key}/run")

    @property
    def directory(self) -> Path:
        """What is kept on this machine, wherever the progress is."""
        from penstock.connectors.paths import is_local, local_path

        if is_local(self.checkpoints):
            return Path(local_path(self.checkpoints))
        return self.settings.home / "runs" / self.key

    def resolve(self) -> Flow:
        """The flow; Invalid with every problem that can be seen without Spark."""
        from penstock.engine.analysis import analyse, offline
        from penstock.engine.flow import resolve_flow

        lookup, known = offline(self.documents)
        defaults = self.settings.defaults.model_dump()
        analysis = analyse(self.chosen, lookup, known, defaults)
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        return resolve_flow(self.chosen, lookup, self.site(), defaults)

    def site(self) -> Site:
        """The streams of the file, kept from run to run."""
        from penstock.connectors.base import Site
        from penstock.engine.analysis import offline
        from penstock.engine.sites import declared_stream
        from penstock.specs.documents import derive_id
        from penstock.specs.stream import StreamSpec
        from penstock.streams.home import StreamHome, StreamPlace

        home, lookup = StreamHome.of(self.settings), offline(self.documents)[0]

        named = (self.chosen.get("spec") or {}).get("dead_letters")
        dead = derive_id(named) if named else f"{self.key}.dead"

        def stream(name: str) -> StreamPlace:
            id, defaults = derive_id(name), self.settings.defaults.model_dump()
            own = id == dead and named is None
            spec = StreamSpec() if own else declared_stream(name, lookup, defaults)
            return StreamPlace(id, spec, home.ensure(id, LIFE, spec))

        return Site(
            f"{self.key}:{LIFE}",
            0,
            stream,
            f"{self.key}.in",
            dead=dead,
            state=self.directory,
            behind_bytes=self.settings.worker.behind_bytes,
            allow_python=self.settings.allow_python,
        )

    def judge(self, spark: SparkSession) -> list[Problem]:
        """What to be warned of; Invalid with every problem that Spark finds."""
        from penstock.engine.analysis import analyse, offline

        lookup, known = offline(self.documents)
        defaults, allow_python = self.settings.defaults.model_dump(), self.settings.allow_python
        analysis = analyse(self.chosen, lookup, known, defaults, spark, allow_python=allow_python)
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        return analysis.warnings


def choose(found: Sequence[Found], name: str | None, settings: Settings) -> Project:
    """What runs among documents, or the one of that name. Pipelines come before what else might run."""
    from penstock.specs.documents import derive_id, runs

    able = [document for document in found if isinstance(document.raw, Mapping) and runs(document.raw)]
    pipelines = [document for document in able if document.kind == "Pipeline"]
    if name is not None:
        chosen = [one for one in able if derive_id(one.name or "") == derive_id(name)]
        chosen = [one for one in chosen if one.kind == "Pipeline"] or chosen
        if not chosen:
            hint = did_you_mean(name, [one.name or "" for one in able]) if able else None
            message = f"there is no pipeline '{name}' in {found[0].file}"
            raise Usage(Problem(code="unknown_pipeline", message=message, hint=hint))
    else:
        chosen = pipelines or able
    if not chosen:
        _refuse_others(found)
    if len(chosen) > 1:
        names = ", ".join(one.name or "" for one in chosen)
        hint = f"choose with --name: {names}" if name is None else "remove one of them"
        what = "pipeline" if pipelines else "document that runs"
        raise Usage(Problem(code="several_pipelines", message=f"there is more than one {what}", hint=hint))
    project = Project(chosen[0].raw, [document.raw for document in found], settings)
    _require_reachable(project)
    return project


def _require_reachable(project: Project) -> None:
    """Nobody can send anything to a pipeline that runs without a server."""
    from penstock.engine.analysis import offline
    from penstock.specs.catalog import catalog
    from penstock.specs.documents import derive_id

    source = (project.chosen.get("spec") or {}).get("source")
    if isinstance(source, Mapping) and isinstance(ref := source.get("ref"), str):
        source = (offline(project.documents)[0]("Source", derive_id(ref)) or {}).get("spec")
    kind = source.get("type") if isinstance(source, Mapping) else None
    if isinstance(kind, str) and getattr(catalog("source").classes.get(kind), "push", False):
        message = f"a source of type '{kind}' needs a server, to which events are sent"
        hint = "start one with penstock up, and apply the file"
        raise Invalid(Problem(code="needs_server", message=message, path="spec.source", hint=hint))


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
    from penstock.connectors.cursors import forget_cursor
    from penstock.connectors.storage import storage_for
    from penstock.control.lifecycle import Keeper
    from penstock.engine.checkpoints import memory_of

    flow = project.resolve()
    log = settings.home / "logs" / f"run-{project.key}.log"
    shown.step("starting Spark…")
    what = f"{str(project.chosen['kind']).lower()} '{flow.id}'"
    with Lock(project.directory / "lock", what), spark_session(settings, log) as spark:
        shown.step("checking the pipeline…")
        show_problems(project.judge(spark), level="warning")
        checkpoint = f"{project.checkpoints}/{memory_of(flow, spark).key}"
        storage = storage_for(checkpoint, spark)
        resumed = storage.exists(checkpoint)
        if fresh:
            storage.remove(checkpoint)
            forget_cursor(flow.source.component, flow.site)
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
        return Summary.of(flow.id, keeper.state, time.monotonic() - started, resumed, flow.site.dead)
