"""The project of `penstock run`: one document of a file, and the documents it refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.cli.files import Found
from penstock.cli.output import Usage
from penstock.connectors.file.paths import is_local, local_path, qualified
from penstock.control.streams.logs import input_spec
from penstock.engine.plan.analysis import analyse, batch_warnings, offline, with_schema
from penstock.engine.plan.declared_site import declared_stream, held_schema
from penstock.engine.plan.flow import Flow, Lookup, resolve_flow
from penstock.engine.plan.plan import Plan, pinned, plan_run
from penstock.engine.runtime.failures import failure_of
from penstock.errors import Invalid, Problem, did_you_mean
from penstock.frames.site import Site
from penstock.policy import Policy
from penstock.settings import Settings
from penstock.specs.catalog import catalog
from penstock.specs.documents import PipelineBuffer, derive_id, runs
from penstock.specs.stream import StreamSpec
from penstock.specs.validation import parse
from penstock.streams.home import StreamHome, StreamPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIFE = "run"
"""The life of streams and flows outside a registry, which would count their lives."""


@dataclass(frozen=True)
class Project:
    """The document to run, and all documents of its file."""

    chosen: Mapping[str, Any]
    documents: Sequence[Any]
    settings: Settings

    @property
    def key(self) -> str:
        """The name of the project among the runs in a home directory."""
        kind, document_id = str(self.chosen["kind"]), derive_id(str(self.chosen["metadata"]["name"]))
        return document_id if kind == "Pipeline" else f"{kind.lower()}.{document_id}"

    @property
    def checkpoints(self) -> str:
        """The location of the checkpoints."""
        return qualified(f"{self.settings.checkpoint_url.rstrip('/')}/{self.key}/run")

    @property
    def directory(self) -> Path:
        """The directory of the project on this machine, even if the checkpoints are elsewhere."""
        if is_local(self.checkpoints):
            return Path(local_path(self.checkpoints))
        return self.settings.home / "runs" / self.key

    @property
    def policy(self) -> Policy:
        """The policy for the documents, as on a server, except that all environment variables are allowed."""
        return Policy.of(self.settings, all_variables=True)

    def resolve(self) -> Flow:
        """The flow; Invalid with every problem that can be found without Spark."""
        lookup, known = offline(self.documents)
        defaults = self.settings.defaults.model_dump()
        analysis = analyse(self.chosen, lookup, known, defaults, policy=self.policy)
        if not analysis.valid:
            raise Invalid(*analysis.errors)
        return resolve_flow(self.chosen, lookup, self.site(), defaults)

    def site(self) -> Site:
        """The site of the flow: the streams of the file, retained between runs."""
        home, lookup = StreamHome.of(self.settings), offline(self.documents)[0]

        held = f"{self.key}.in"
        named = (self.chosen.get("spec") or {}).get("dead_letters")
        dead = derive_id(named) if named else f"{self.key}.dead"

        def stream(name: str) -> StreamPlace:
            stream_id, defaults = derive_id(name), self.settings.defaults.model_dump()
            if stream_id == held:
                spec = self._input_spec(lookup, defaults)
            elif stream_id == dead and named is None:
                spec = StreamSpec()
            else:
                spec = declared_stream(name, lookup, defaults)
            return StreamPlace(stream_id, spec, home.ensure(stream_id, LIFE, spec, storage=True))

        return Site(
            f"{self.key}:{LIFE}",
            0,
            stream,
            held,
            dead=dead,
            state=self.directory,
            behind_bytes=self.settings.worker.behind_bytes,
            allow_python=self.settings.allow_python,
            policy=self.policy,
        )

    def forget_input(self) -> None:
        """Delete the events that earlier runs have stored from standard input, which can't be read again."""
        StreamHome.of(self.settings).remove(f"{self.key}.in", LIFE)

    def inferred(self, flow: Flow, spark: SparkSession) -> Project:
        """The project with the inferred columns of its source added, which the input stream needs."""
        inline = flow.source.place.via is None
        chosen = with_schema(self.chosen, pinned(flow, spark).source.component, inline=inline)
        others = [chosen if each is self.chosen else each for each in self.documents]
        return Project(chosen, others, self.settings)

    def _input_spec(self, lookup: Lookup, defaults: Mapping[str, Any]) -> StreamSpec:
        """The settings of the stream that holds the events of the source."""
        buffer = (self.chosen.get("spec") or {}).get("buffer")
        given = None if buffer is None else PipelineBuffer.model_validate(buffer)
        return input_spec(given, held_schema(self.chosen, lookup))

    def plan(self, flow: Flow, spark: SparkSession) -> Plan:
        """The plan of the flow; Invalid with every problem that Spark finds."""
        try:
            return plan_run(flow, spark)
        except Invalid:
            raise
        except Exception as error:  # Spark and plugins may raise anything
            raise Invalid(failure_of(error).problem.model_copy(update={"path": "spec"})) from error

    def warnings(self, flow: Flow) -> list[Problem]:
        """Warnings about settings that work, but perhaps not as intended."""
        lookup, known = offline(self.documents)
        analysis = analyse(
            self.chosen, lookup, known, self.settings.defaults.model_dump(), policy=self.policy
        )
        return [*analysis.warnings, *batch_warnings(flow)]


def choose(found: Sequence[Found], name: str | None, settings: Settings) -> Project:
    """Choose the document to run, by name if given. Pipelines take precedence over other kinds."""
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
        raise Usage(Problem(code="several_pipelines", message=f"found more than one {what}", hint=hint))
    return Project(chosen[0].raw, [document.raw for document in found], settings)


def require_reachable(project: Project) -> None:
    """Reject a source that events are sent to: there is no server to receive them."""
    source = (project.chosen.get("spec") or {}).get("source")
    if isinstance(source, Mapping) and isinstance(ref := source.get("ref"), str):
        source = (offline(project.documents)[0]("Source", derive_id(ref)) or {}).get("spec")
    kind = source.get("type") if isinstance(source, Mapping) else None
    if isinstance(kind, str) and getattr(catalog("source").classes.get(kind), "push", False):
        message = f"a source of type '{kind}' needs a server to receive events"
        hint = "start one with `penstock up`, and apply the file with `penstock apply FILE`"
        raise Invalid(Problem(code="needs_server", message=message, path="spec.source", hint=hint))


def _refuse_others(found: Sequence[Found]) -> NoReturn:
    """Raise the reason that there is no pipeline: an invalid document may have been meant to be one."""
    problems: list[Problem] = []
    for document in found:
        try:
            parse(document.raw)
        except Invalid as error:
            problems += error.problems
    raise Invalid(*problems or [Problem(code="no_pipeline", message="there is no document of kind Pipeline")])
