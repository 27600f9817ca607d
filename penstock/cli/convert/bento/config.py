"""Whole configurations of Bento: input, processors, output and buffer."""

from __future__ import annotations

from typing import Any

from penstock.cli.convert.bento.build import Build
from penstock.cli.convert.bento.ends import TUNING
from penstock.cli.convert.bento.inputs import inputs
from penstock.cli.convert.bento.outputs import output
from penstock.cli.convert.bento.processors import processors
from penstock.cli.convert.draft import Draft, Note, Table, To, new_document
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import number

TOP: Table = {
    "http": Note("Penstock's server has its own settings"),
    "logger": Note("Penstock's logs have their own settings"),
    "metrics": Note("Penstock has its own metrics"),
    "tracer": Note("Penstock traces single events instead: see the Trace tab of a pipeline"),
    "shutdown_timeout": TUNING,
    "shutdown_delay": TUNING,
    "pipeline.threads": Note("Spark decides how many tasks run at once"),
    "error_handling": TUNING,
}


def is_bento(root: Node) -> bool:
    """Whether a document looks like a Bento configuration."""
    return (
        root.is_map
        and ("input" in root.children or "output" in root.children)
        and "kind" not in root.children
    )


def convert(draft: Draft, name: str) -> None:
    """Add the documents of a configuration to the draft."""
    _convert(Build(draft, name))


def _convert(build: Build) -> None:
    draft, root = build.draft, build.root
    document = new_document("Pipeline", build.name, build.spec)
    draft.documents.append(document)
    draft.place(root, document)
    draft.fill(document, root, TOP)
    build.spec["source"] = inputs(build, root.get("input"))
    if (steps := root.at("pipeline.processors")) is not None:
        processors(build, steps)
    if (found := root.get("output")) is None:
        draft.about(document, "there is no output: events are dropped", "add a sink")
        build.sinks.append({"type": "drop"})
    else:
        output(build, found)
    _buffer(build, root.get("buffer"))
    for sink in build.sinks:
        if build.steps.extra and sink.get("format") == "text":
            sink["format"] = "json"
            names = ", ".join(build.steps.extra)
            draft.about(sink, f"an event is an object with 'value' and {names}, which another sink needs")
    if build.steps.made:
        build.spec["processors"] = build.steps.made
    build.spec["sinks"] = build.sinks
    if "batch" in build.spec:
        build.spec["batch"] = build.spec.pop("batch")


def _buffer(build: Build, buffer: Node | None) -> None:
    if buffer is None:
        return
    kind, config = build.component(buffer)
    pushed = build.spec["source"]["type"] == "http"
    if kind == "none":
        config.use()
    elif kind in ("memory", "sqlite") and pushed:
        made: dict[str, Any] = {"type": kind}
        build.spec["buffer"] = made
        build.draft.fill(made, config, {"limit": To("limit_bytes", number)})
        if (path := config.get("path")) is not None:
            build.draft.note(path, "the buffer is in the home directory")
    elif kind in ("memory", "sqlite"):
        build.draft.note(buffer, "no buffer is needed: a flow continues where it stopped")
    else:
        build.draft.change(buffer, f"the buffer '{kind}' was left out", "use a window step")
