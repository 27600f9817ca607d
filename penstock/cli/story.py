"""`penstock story`: traces one event."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import complete
from penstock.cli.client import connect
from penstock.cli.kinds import target_of
from penstock.cli.options import Json, Server
from penstock.cli.output import say, show_json, show_problems
from penstock.cli.test_views import show_event, show_step
from penstock.cli.text import when
from penstock.errors import Problem

STYLES = {"delivered": "green", "failed": "bold red", "behind": "yellow", "waiting": "cyan"}


def story(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a pipeline, or `task/NAME`.", autocompletion=complete.targets, show_default=False
        ),
    ],
    offset: Annotated[
        int, typer.Option(min=0, help="Offset of the event in the source stream.", show_default=False)
    ],
    server: Server = None,
    json: Json = False,
) -> None:
    """Trace one event: the output of each step and the delivery status at each sink."""
    found = connect(server).about(*target_of(name), "story", offset=offset)
    if json:
        show_json(found)
        return
    from penstock.engine.trials.result import StepResult  # imports Arrow

    event = show_event(found["event"])
    say((f"{found['stream']} {offset} ", "bold"), (f"{when(found['time'])}  ", "dim"), event)
    say("")
    for step in found["steps"]:
        show_step(StepResult.model_validate(step))
    for letter in found["letters"]:
        say(*_letter(letter))
    for sink in found["sinks"]:
        state = (f"{sink['state'].replace('_', ' ')}: ", STYLES.get(sink["state"], ""))
        say((f"→ {sink['id']} ", "bold"), f"({sink['type']}) ", state, sink["why"])
    show_problems([Problem.model_validate(each) for each in found["warnings"]], level="warning")
    show_problems([Problem.model_validate(each) for each in found["errors"]])


def _letter(letter: dict[str, Any]) -> list[str | tuple[str, str]]:
    head = (f"dead letter {letter['offset']} ", "red")
    return [head, f"of '{letter['step']}' [{letter['code']}] {letter['reason'] or ''} ({letter['state']})"]
