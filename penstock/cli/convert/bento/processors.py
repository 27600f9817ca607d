"""Processors of Bento as steps."""

from __future__ import annotations

import re

from penstock.cli.convert.bento.build import Build
from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.bloblang import parse_mapping, parse_query
from penstock.cli.convert.language.expressions import Binary, Expression, Literal, Unary
from penstock.cli.convert.located import Node

HINTS = {
    "http": "use an http step", "json_schema": "use a validate step", "dedupe": "use a dedupe step",
    "sql_select": "use a lookup step", "split": "use an explode step", "unarchive": "use an explode step",
    "group_by": "use a window step", "rate_limit": "use a throttle step",
    "schema_registry_decode": "use a decode step with a registry",
    "catch": "events that fail in a step go to the dead letters",
}  # fmt: skip
"""Hints for processors that are not converted; all others get the hint to write a script."""


def processors(build: Build, steps: Node) -> None:
    """Add the steps for a list of processors."""
    build.draft.place(steps, build.steps.made)
    for step in steps.items:
        step = build.resolved(step, "processor_resources")
        kind, config = build.component(step)
        before = len(build.steps.made)
        if (label := step.get("label")) is not None and label is not config:
            label.use()
        try:
            _processor(build, kind, config)
        except Unmapped as reason:
            build.refuse(config, reason)
        made = build.steps.made[before:]
        if made:
            build.draft.place(step, made[-1])
            if label is not None and re.fullmatch(r"\w+", label.text()) and len(made) == 1:
                made[-1]["id"] = label.text()


def _processor(build: Build, kind: str, config: Node) -> None:
    if kind in ("mapping", "bloblang", "mutation"):
        text = config.value if isinstance(config.value, str) else ""
        assignments = parse_mapping(text)
        build.steps.mapping(assignments, keeps=kind == "mutation")
        config.use()
    elif kind in ("try", "for_each") and config.is_list:
        processors(build, config)
    elif kind == "switch" and config.is_list and (keep := _dropping(config)) is not None:
        build.steps.keep(keep)
        config.use()
    elif kind == "log":
        build.draft.note(config, "log lines are left out: a trace of an event shows each step")
    elif kind == "noop":
        config.use()
    else:
        raise Unmapped(
            f"the processor '{kind}' was left out", HINTS.get(kind, "write it as a javascript step")
        )


def _dropping(cases: Node) -> Expression | None:
    """The condition for keeping an event, if the cases of a switch only drop events."""
    kept: Expression | None = None
    for case in cases.items:
        check, steps = case.get("check"), case.get("processors")
        inside = (
            [next(iter(step.value.values()), None) for step in steps.items if step.is_map] if steps else []
        )
        if check is None or [str(each).strip() for each in inside] != ["root = deleted()"]:
            return None
        try:
            stays: Expression = Unary("not", Binary("??", parse_query(str(check.value)), Literal(False)))
        except Unmapped:
            return None
        kept = stays if kept is None else Binary("and", kept, stays)
    return kept
