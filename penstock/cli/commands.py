"""Every command of `penstock`: where its function is, and the line that `--help` shows for it.

This table is all that `penstock --help` reads. The module of a command is imported when the command is called
or its own help is asked for, so that no command waits for the libraries of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

RUN = "Run"
DOCUMENTS = "Documents on a server"
STREAMS = "Streams"
ACCESS = "Access"
ABOUT = "About"


@dataclass(frozen=True)
class Entry:
    """A command: its panel in `--help`, `module:function` below `penstock.cli`, and its line of help.

    The line is the first one of the function's docstring; a test compares the two.
    """

    panel: str
    function: str
    help: str

    def load(self) -> Callable[..., None]:
        """The function of the command, imported."""
        module, _, name = self.function.partition(":")
        found: Callable[..., None] = getattr(import_module(f"penstock.cli.{module}"), name)
        given = signature(found).parameters
        # A worker has a token of its own.
        return _with_token(found) if "server" in given and "token" not in given else found


def _with_token(command: Callable[..., None]) -> Callable[..., None]:
    """A command that speaks with a server, with an option for its token."""
    from penstock.cli.credentials import Token, remember

    @wraps(command)
    def run(*, api_token: str | None = None, **given: Any) -> None:
        remember(api_token)
        command(**given)

    run.__annotations__ = hints = {**get_type_hints(command, include_extras=True), "api_token": Token}
    own = signature(command).parameters.values()
    option = Parameter("api_token", Parameter.KEYWORD_ONLY, default=None)
    parameters = [each.replace(annotation=hints[each.name]) for each in (*own, option)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


GROUPS = {
    "stream": ("Look into streams, send events, and look after their files.", STREAMS),
    "dead-letters": (
        "Read, edit and replay events that pipelines, tasks and sinks could not process.",
        DOCUMENTS,
    ),
    "worker": ("Run a worker that takes pipelines from the registry of the settings.", RUN),
    "user": ("Add, change and remove users. Run it where the server runs.", ACCESS),
    "token": ("Make, list and revoke tokens for programs.", ACCESS),
    "jars": ("Download and list the jars of connectors that Spark does not include.", ABOUT),
}
"""The first word of commands of two words: its line of help and its panel."""

COMMANDS = {
    "up": Entry(
        RUN,
        "up:up",
        "Start Penstock: the server, the coordinator and the workers. Ctrl-C shuts it down cleanly.",
    ),
    "worker": Entry(
        RUN, "worker:worker", "Run a worker that takes pipelines from the registry of the settings."
    ),
    "worker ls": Entry(RUN, "workers:ls", "List the workers of a server, with their labels and flows."),
    "worker drain": Entry(
        RUN, "workers:drain", "Let a worker give its flows back after the current batch, and take no more."
    ),
    "worker token": Entry(
        RUN,
        "workers:token",
        "Make a token with which workers on other machines join. Run it where the server runs.",
    ),
    "worker tokens": Entry(
        RUN, "workers:tokens", "List the tokens of workers. Run it where the server runs."
    ),
    "worker revoke": Entry(
        RUN,
        "workers:revoke",
        "Revoke a token: workers that use it stop their flows and end. Run it where the server runs.",
    ),
    "run": Entry(
        RUN,
        "run:run",
        "Run one pipeline until its input ends or Ctrl-C; a later run goes on where this one stopped.",
    ),
    "validate": Entry(
        RUN,
        "validate:validate",
        "Check documents, which see one another, down to every column of every SQL query.",
    ),
    "check": Entry(
        RUN,
        "check:check",
        "Test the connections of all sources and sinks in documents. Nothing is changed.",
    ),
    "test": Entry(
        RUN,
        "test:test",
        "Run the tests of documents, without a server: sample events in, and what comes out compared.",
    ),
    "bench": Entry(
        RUN,
        "bench:bench",
        "Measure a pipeline on its own recent events. Its sinks get nothing, and it keeps running meanwhile.",
    ),
    "drill": Entry(
        RUN,
        "drill.command:drill",
        "Kill, freeze and cut off workers of pipelines, and check that nothing was lost or repeated.",
    ),
    "convert": Entry(
        RUN,
        "convert.command:convert",
        "Convert a pipeline of DeltaForge, Bento, Redpanda Connect, PADAS or Kafka Connect into documents.",
    ),
    "apply": Entry(
        DOCUMENTS,
        "apply:apply",
        "Create or update every document in files, those first that others refer to.",
    ),
    "get": Entry(DOCUMENTS, "documents:get", "List documents, or show one."),
    "describe": Entry(DOCUMENTS, "documents:describe", "Show all there is to know of a document."),
    "delete": Entry(
        DOCUMENTS,
        "documents:delete",
        "Delete documents that nothing refers to. What runs is stopped first.",
    ),
    "pause": Entry(DOCUMENTS, "lifecycle:pause", "Pause a flow after the current batch; it keeps its place."),
    "resume": Entry(DOCUMENTS, "lifecycle:resume", "Let a paused flow go on."),
    "stop": Entry(DOCUMENTS, "lifecycle:stop", "Stop a flow; `start` lets it go on where it was."),
    "start": Entry(DOCUMENTS, "lifecycle:start", "Start a flow that is stopped, failed or completed."),
    "restart": Entry(
        DOCUMENTS,
        "lifecycle:restart",
        "End a running flow after the current batch and start it again; start one that has ended.",
    ),
    "logs": Entry(
        DOCUMENTS,
        "flow_logs:logs",
        "Show the log of a flow: starts, failures, dead letters, and what its scripts print.",
    ),
    "story": Entry(
        DOCUMENTS,
        "story:story",
        "Show what each step makes of one event, and what has become of it at each sink.",
    ),
    "sinks": Entry(
        DOCUMENTS,
        "sinks:sinks",
        "Show how far each sink of a pipeline or task has come, and what it has missed.",
    ),
    "catch-up": Entry(
        DOCUMENTS,
        "sinks:catch_up",
        "Let a sink that is behind try again now instead of later; a completed pipeline is started for it.",
    ),
    "replay": Entry(
        DOCUMENTS,
        "replay:replay",
        "Deliver a range of the stream that a pipeline reads once more; the pipeline itself goes on.",
    ),
    "replays": Entry(DOCUMENTS, "replay:replays", "List the replays of a pipeline, newest first."),
    "revisions": Entry(DOCUMENTS, "revisions:revisions", "List the revisions of a document, newest first."),
    "diff": Entry(DOCUMENTS, "revisions:diff", "Show how two revisions of a document differ."),
    "rollback": Entry(
        DOCUMENTS, "revisions:rollback", "Save the content of an earlier revision as the newest one."
    ),
    "export": Entry(DOCUMENTS, "bundle:export", "Write every document of the server as one bundle."),
    "import": Entry(
        DOCUMENTS, "bundle:import_", "Save all documents of a bundle or, if one is invalid, none of them."
    ),
    "query": Entry(
        STREAMS,
        "query:query",
        "Query what streams hold in Spark SQL. Nothing is changed, and nothing but streams is seen.",
    ),
    "login": Entry(
        ACCESS,
        "tokens:login",
        "Log in to a server: a token for 30 days is stored in your configuration directory.",
    ),
    "logout": Entry(
        ACCESS, "tokens:logout", "Revoke and remove the token that `penstock login` has stored for a server."
    ),
    "user add": Entry(
        ACCESS,
        "users:add",
        "Add a user; the password is asked for, or read from standard input. Run it where the server runs.",
    ),
    "user ls": Entry(
        ACCESS, "users:ls", "List users, with their roles and last log-ins. Run it where the server runs."
    ),
    "user passwd": Entry(
        ACCESS,
        "users:passwd",
        "Set the password of a user and end all sessions. Run it where the server runs.",
    ),
    "user role": Entry(ACCESS, "users:role", "Give a user another role. Run it where the server runs."),
    "user disable": Entry(
        ACCESS,
        "users:disable",
        "Keep a user from logging in; sessions and tokens end. Run it where the server runs.",
    ),
    "user rm": Entry(
        ACCESS, "users:rm", "Remove a user, with all sessions and tokens. Run it where the server runs."
    ),
    "token create": Entry(
        ACCESS,
        "tokens:create",
        "Make a token for a program. It is printed once; the server keeps a hash of it.",
    ),
    "token ls": Entry(ACCESS, "tokens:ls", "List your tokens; as an admin, those of everybody."),
    "token revoke": Entry(ACCESS, "tokens:revoke", "Revoke a token: it is refused within seconds."),
    "audit": Entry(
        ACCESS, "tokens:audit", "Show who has changed what, newest first. `--json` has it before and after."
    ),
    "config": Entry(ABOUT, "info:config", "Show each setting with its value and where that came from."),
    "version": Entry(ABOUT, "info:version", "Show the versions of Penstock and of what it runs on."),
    "jars fetch": Entry(
        ABOUT, "jars:fetch", "Download the jars of connectors, so that no network is needed later."
    ),
    "jars list": Entry(
        ABOUT, "jars:ls", "List the jars of connectors, and whether they are on this machine."
    ),
    "stream ls": Entry(STREAMS, "stream_server:ls", "List streams with what they hold and who reads them."),
    "stream inspect": Entry(
        STREAMS,
        "stream_server:inspect",
        "Show all numbers of a stream: its size, its buffer, what was dropped, and each reader.",
    ),
    "stream tail": Entry(
        STREAMS,
        "stream_server:tail",
        "Print the events of a stream as they come, until Ctrl-C. Goes on when the server comes back.",
    ),
    "stream move": Entry(
        STREAMS,
        "stream_move:move",
        "Move a stream into Kafka while it is written and read. Run it again to continue after a failure.",
    ),
    "stream produce": Entry(
        STREAMS,
        "stream_produce:produce",
        "Append events to a stream. Waits while it is full. Exit code 1 if an event does not fit.",
    ),
    "stream verify": Entry(
        STREAMS,
        "stream_files:verify",
        "Read all that streams hold, and name each fault with its offsets. Exit code 1 if there is one.",
    ),
    "stream repair": Entry(
        STREAMS,
        "stream_files:repair",
        "Repair streams without losing an event that can be read. Exit code 1 if a fault is left.",
    ),
    "stream export": Entry(
        STREAMS,
        "stream_files:export",
        "Write the events of a stream into a file. Exit code 1 if some cannot be read.",
    ),
    "dead-letters ls": Entry(
        DOCUMENTS, "letters:ls", "List dead letters, and how many there are of each step and code."
    ),
    "dead-letters show": Entry(DOCUMENTS, "letters:show", "Show all that is known of a dead letter."),
    "dead-letters edit": Entry(
        DOCUMENTS,
        "letters:edit",
        "Put another event in the place of a dead letter's, for a replay. The original is kept.",
    ),
    "dead-letters replay": Entry(
        DOCUMENTS,
        "letters:replay",
        "Replay dead letters through the pipeline as it is now. What fails again is a new letter.",
    ),
    "dead-letters discard": Entry(
        DOCUMENTS,
        "letters:discard",
        "Mark dead letters as ones that will not be replayed. They stay in their stream.",
    ),
}
"""Every command by its words, in the order of `--help` and of the reference."""
