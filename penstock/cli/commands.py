"""Every command of `penstock`: the location of its function, and its line in `--help`.

`penstock --help` reads only this table. The module of a command is imported when the command is called or its
own help is requested, so that no command waits for the libraries of another one.
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

    The line is the first line of the function's docstring; a test compares the two.
    """

    panel: str
    function: str
    help: str

    def load(self) -> Callable[..., None]:
        """The function of the command, imported."""
        module, _, name = self.function.partition(":")
        found: Callable[..., None] = getattr(import_module(f"penstock.cli.{module}"), name)
        given = signature(found).parameters
        # A worker has its own token.
        return _with_token(found) if "server" in given and "token" not in given else found


def _with_token(command: Callable[..., None]) -> Callable[..., None]:
    """A command that accesses a server, extended by an option for its token."""
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
    "stream": ("Inspect streams, send events, and verify, repair or export stream files.", STREAMS),
    "dead-letters": (
        "List, edit and replay events that could not be processed.",
        DOCUMENTS,
    ),
    "worker": ("Run a worker that takes pipelines from the registry of the settings.", RUN),
    "secret": ("Set and list secrets: values that documents use as ${secret:NAME}.", DOCUMENTS),
    "user": ("Add, change and remove users. Run it where the server runs.", ACCESS),
    "token": ("Make, list and revoke tokens for programs.", ACCESS),
    "jars": ("Download and list the jars of connectors that Spark does not include.", ABOUT),
}
"""The help line and panel of each group, by the first word of its two-word commands."""

COMMANDS = {
    "up": Entry(
        RUN,
        "up:up",
        "Start Penstock: the server, the coordinator and the workers. Ctrl-C shuts it down cleanly.",
    ),
    "worker": Entry(RUN, "worker:worker", "Run a worker for the registry in the settings."),
    "worker ls": Entry(RUN, "workers:ls", "List the workers of a server, with their labels and flows."),
    "worker drain": Entry(
        RUN,
        "workers:drain",
        "Move all flows off a worker after the current batch. The worker takes no new flows.",
    ),
    "worker token": Entry(
        RUN,
        "workers:token",
        "Create a token for workers on other machines. Run this on the server's machine.",
    ),
    "worker tokens": Entry(RUN, "workers:tokens", "List worker tokens. Run this on the server's machine."),
    "worker revoke": Entry(
        RUN,
        "workers:revoke",
        "Revoke a token: workers that use it stop their flows and exit. Run this on the server's machine.",
    ),
    "run": Entry(
        RUN,
        "run:run",
        "Run one pipeline until its input ends or Ctrl-C. The next run continues from there.",
    ),
    "validate": Entry(
        RUN,
        "validate:validate",
        "Validate documents and their references, down to every column of every SQL query.",
    ),
    "check": Entry(
        RUN,
        "check:check",
        "Test the connections of all sources and sinks in documents without changing anything.",
    ),
    "test": Entry(
        RUN,
        "test:test",
        "Run the tests of documents on sample events. Needs no server.",
    ),
    "bench": Entry(
        RUN,
        "bench:bench",
        "Measure a pipeline on its own recent events. Nothing is written to its sinks, and it keeps running.",
    ),
    "drill": Entry(
        RUN,
        "drill.command:drill",
        "Kill, freeze and isolate workers, and check that no event is lost or delivered twice.",
    ),
    "convert": Entry(
        RUN,
        "convert.command:convert",
        "Convert a pipeline of DeltaForge, Bento, Redpanda Connect, PADAS or Kafka Connect into documents.",
    ),
    "apply": Entry(
        DOCUMENTS,
        "apply:apply",
        "Create or update every document in files, in order of their references.",
    ),
    "secret set": Entry(
        DOCUMENTS,
        "secrets:set_",
        "Create a secret, or give it another value. It is read from the terminal or from standard input.",
    ),
    "secret ls": Entry(
        DOCUMENTS, "secrets:ls", "List secrets: where their values come from, and what uses them."
    ),
    "get": Entry(DOCUMENTS, "documents:get", "List documents, or show one."),
    "describe": Entry(DOCUMENTS, "documents:describe", "Show a document in detail."),
    "delete": Entry(
        DOCUMENTS,
        "documents:delete",
        "Delete documents that nothing refers to. Running flows are stopped first.",
    ),
    "pause": Entry(
        DOCUMENTS, "lifecycle:pause", "Pause flows after the current batch. They keep their position."
    ),
    "resume": Entry(DOCUMENTS, "lifecycle:resume", "Resume paused flows."),
    "stop": Entry(
        DOCUMENTS, "lifecycle:stop", "Stop flows after the current batch. `start` continues from there."
    ),
    "start": Entry(DOCUMENTS, "lifecycle:start", "Start stopped, failed or completed flows."),
    "restart": Entry(
        DOCUMENTS,
        "lifecycle:restart",
        "Restart flows after the current batch.",
    ),
    "logs": Entry(
        DOCUMENTS,
        "flow_logs:logs",
        "Show the log of a flow: starts, failures, dead letters and script output.",
    ),
    "story": Entry(
        DOCUMENTS,
        "story:story",
        "Trace one event: the output of each step and the delivery status at each sink.",
    ),
    "sinks": Entry(
        DOCUMENTS,
        "sinks:sinks",
        "Show the position and missed batches of each sink of a pipeline or task.",
    ),
    "catch-up": Entry(
        DOCUMENTS,
        "sinks:catch_up",
        "Retry a sink that is behind now. A completed pipeline is started for this.",
    ),
    "replay": Entry(
        DOCUMENTS,
        "replay:replay",
        "Replay a range of events through a pipeline. The pipeline itself keeps running.",
    ),
    "replays": Entry(DOCUMENTS, "replay:replays", "List the replays of a pipeline, newest first."),
    "revisions": Entry(DOCUMENTS, "revisions:revisions", "List the revisions of a document, newest first."),
    "diff": Entry(DOCUMENTS, "revisions:diff", "Show the differences between two revisions of a document."),
    "rollback": Entry(
        DOCUMENTS, "revisions:rollback", "Roll back to an earlier revision, saved as a new one."
    ),
    "export": Entry(DOCUMENTS, "bundle:export", "Export every document of the server as one bundle."),
    "import": Entry(
        DOCUMENTS, "bundle:import_", "Import all documents of a bundle, or none if one is invalid."
    ),
    "query": Entry(
        STREAMS,
        "query:query",
        "Query the events of streams with Spark SQL, read-only.",
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
    "token ls": Entry(ACCESS, "tokens:ls", "List your tokens, or as an admin the tokens of all users."),
    "token revoke": Entry(ACCESS, "tokens:revoke", "Revoke a token. The server rejects it within seconds."),
    "audit": Entry(
        ACCESS, "tokens:audit", "Show who has changed what, newest first. `--json` has it before and after."
    ),
    "config": Entry(ABOUT, "info:config", "Show each setting with its value and origin."),
    "version": Entry(ABOUT, "info:version", "Show the versions of Penstock, Spark, Python and Java."),
    "jars fetch": Entry(ABOUT, "jars:fetch", "Download the jars of connectors for use without a network."),
    "jars list": Entry(
        ABOUT, "jars:ls", "List the jars of connectors, and whether they are on this machine."
    ),
    "stream ls": Entry(STREAMS, "stream_server:ls", "List streams with their size and readers."),
    "stream inspect": Entry(
        STREAMS,
        "stream_server:inspect",
        "Show a stream in detail: size, buffer, dropped events and readers.",
    ),
    "stream tail": Entry(
        STREAMS,
        "stream_server:tail",
        "Print the events of a stream as they arrive, until Ctrl-C. Reconnects when the server restarts.",
    ),
    "stream move": Entry(
        STREAMS,
        "stream_move:move",
        "Move a stream to Kafka while it is in use. Run the command again to continue after a failure.",
    ),
    "stream produce": Entry(
        STREAMS,
        "stream_produce:produce",
        "Append events to a stream. Waits while the stream is full. Exit code 1 if an event doesn't match.",
    ),
    "stream verify": Entry(
        STREAMS,
        "stream_files:verify",
        "Verify the files of streams and list damaged offsets. Exit code 1 if there is any damage.",
    ),
    "stream repair": Entry(
        STREAMS,
        "stream_files:repair",
        "Repair streams without losing any readable event. Exit code 1 if damage remains.",
    ),
    "stream export": Entry(
        STREAMS,
        "stream_files:export",
        "Export the events of a stream to a file. Exit code 1 if some can't be read.",
    ),
    "dead-letters ls": Entry(DOCUMENTS, "letters:ls", "List dead letters with counts by step and code."),
    "dead-letters show": Entry(DOCUMENTS, "letters:show", "Show a dead letter in detail."),
    "dead-letters edit": Entry(
        DOCUMENTS,
        "letters:edit",
        "Edit the event of a dead letter before a replay. The original is kept.",
    ),
    "dead-letters replay": Entry(
        DOCUMENTS,
        "letters:replay",
        "Replay dead letters through the current revision. Events that fail again become new letters.",
    ),
    "dead-letters discard": Entry(
        DOCUMENTS,
        "letters:discard",
        "Mark dead letters as not to be replayed. They stay in the dead-letter stream.",
    ),
    "dead-letters send": Entry(
        DOCUMENTS,
        "letters:send",
        "Send the original events of dead letters to the input again, for letters that can't be replayed.",
    ),
}
"""Every command by name, in the order of `--help` and of the reference."""
