"""Registry bundles of PADAS: streams, sources, sinks, tasks and pipelines."""

from __future__ import annotations

from typing import Any

from penstock.cli.convert.draft import Draft, Entry, Note, Same, Table, To, Unmapped, new_document
from penstock.cli.convert.language.as_sql import ddl_of
from penstock.cli.convert.language.pdl import Program, parse_program
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import (
    GROUP,
    STORE_LOGIN,
    boolean,
    comma_list,
    document_name,
    mechanism,
    number,
)
from penstock.specs.documents import derive_id

LISTS = ("streams", "sources", "sinks", "tasks", "pipelines", "connectors", "queries")

AUDIT = Note("times of the other registry: Penstock has revisions")
TUNING = Note("tuning of the other system: Penstock has its own")

ROW: dict[str, Entry] = {
    "created_time": AUDIT, "updated_time": AUDIT, "created_at": AUDIT, "updated_at": AUDIT,
    "created_by": AUDIT, "updated_by": AUDIT,
}  # fmt: skip


def _compression(node: Node) -> str:
    name = node.text().lower()
    if name in ("zstd", "lz4", "none"):
        return name
    raise Unmapped(f"the compression '{node.value}' has no equivalent: zstd is used")


def _mode(node: Node) -> str:
    name = node.text().lower()
    if name not in ("block", "drop", "timeout"):
        raise Unmapped(f"the mode '{node.value}' has no equivalent: block is used")
    return name


STREAM: Table = {
    "wal.enabled": To("wal.enabled", boolean),
    "wal.retention_ms": To("wal.retention_ms", number),
    "wal.retention_bytes": To("wal.retention_bytes", number),
    "wal.max_segments": To("wal.max_segments", number),
    "wal.segment_bytes": To("wal.segment_bytes", number),
    "wal.segment_size": To("wal.segment_bytes", number),
    "wal.sync": To("wal.sync", boolean),
    "wal.compression_algorithm": To("wal.compression", _compression),
    "wal.algorithm": To("wal.compression", _compression),
    "wal.batch.max_events": To("wal.batch.max_events", number),
    "wal.batch.max_bytes": To("wal.batch.max_bytes", number),
    "wal.batch.timeout_ms": To("wal.batch.max_ms", number),
    "wal.batch.max_ms": To("wal.batch.max_ms", number),
    "buffer.max_events": To("buffer.max_events", number),
    "buffer.max_bytes": To("buffer.max_bytes", number),
    "buffer.timeout_ms": To("buffer.timeout_ms", number),
    "buffer.mode": To("buffer.mode", _mode),
    "buffer.backpressure": To("buffer.mode", _mode),
}

KAFKA: dict[str, Entry] = {
    "bootstrap_servers": To("brokers", comma_list),
    "bootstrap.servers": To("brokers", comma_list),
    "group_id": GROUP,
    "group.id": GROUP,
    "auto_offset_reset": "position",
    "sasl_mechanism": To("security.sasl.mechanism", mechanism),
    "sasl_username": "security.sasl.username",
    "sasl_password": "security.sasl.password",
    "ssl_ca_location": "security.tls.ca_file",
    "acks": Same("all", "a batch is acknowledged by all replicas"),
}
SOURCES: dict[str, tuple[str, Table, dict[str, Any]]] = {
    "kafka": ("kafka", {**KAFKA, "topic": To("topics", comma_list)}, {}),
    "http": (
        "http",
        {
            "path": "path",
            "endpoint": Note("Penstock's server accepts the events: its address is a server setting"),
            "bind": Note("Penstock's server accepts the events: its address is a server setting"),
            "port": Note("Penstock's server accepts the events: its address is a server setting"),
        },
        {},
    ),
    "file": (
        "file",
        {"path": "path", "file_path": "path", "poll_interval_ms": To("poll_ms", number)},
        {"format": "json"},
    ),
    "syslog": (
        "syslog",
        {
            "endpoint": "listen",
            "bind": "listen",
            "protocol": To("transport", lambda node: node.text().lower()),
        },
        {},
    ),
}
SINKS: dict[str, tuple[str, Table, dict[str, Any]]] = {
    "kafka": ("kafka", {**KAFKA, "topic": "topic"}, {}),
    "http": (
        "http",
        {
            "url": "url",
            "endpoint": "url",
            "method": To("method", lambda node: node.text().upper()),
            "headers": "headers",
            "timeout_ms": To("timeout_ms", number),
        },
        {},
    ),
    "file": ("file", {"path": "path", "file_path": "path"}, {"format": "json"}),
    "object_storage": (
        "file",
        {"compression": To("options", lambda node: {"compression": node.text()})},
        {"format": "json"},
    ),
    "syslog": (
        "syslog",
        {"endpoint": "address", "protocol": To("protocol", lambda node: node.text().lower())},
        {},
    ),
}


def is_padas(root: Node) -> bool:
    """Whether a document looks like a registry bundle of PADAS."""
    if not root.is_map or "kind" in root.children:
        return False
    lists = [name for name in LISTS if (node := root.get(name)) is not None and node.is_list]
    return len(lists) >= 2 or any(name in lists for name in ("pipelines", "tasks", "streams"))


def convert(draft: Draft, name: str) -> None:
    """Add the documents of a bundle to the draft."""
    _Bundle(draft).convert()


class _Bundle:
    def __init__(self, draft: Draft) -> None:
        self.draft, self.root = draft, draft.root
        self.tasks: dict[str, tuple[dict[str, Any], Program, Node]] = {}
        self.ends: dict[tuple[str, str], tuple[dict[str, Any], Node]] = {}

    def convert(self) -> None:
        draft, root = self.draft, self.root
        for version in ("version", "exported_at"):
            if (node := root.get(version)) is not None:
                draft.note(node, "describes the export itself", code="left_out")
        for node in self._rows("streams"):
            spec: dict[str, Any] = {}
            self._document("Stream", node, spec)
            draft.fill(spec, node, {**STREAM, **ROW})
            self._wal(node, spec)
            if draft.schema is not None:
                spec["schema"] = draft.schema
        for role, kind in (("source", "Source"), ("sink", "Sink")):
            for node in self._connectors(role):
                self._end(role, kind, node)
        for node in self._rows("tasks"):
            self._task(node)
        for node in self._rows("pipelines"):
            self._pipeline(node)

    def _rows(self, name: str) -> list[Node]:
        found = self.root.get(name)
        return [node for node in found.items if node.is_map] if found is not None else []

    def _connectors(self, role: str) -> list[Node]:
        return [*self._rows(f"{role}s"), *(n for n in self._rows("connectors") if n.peek("type") == role)]

    def _document(self, kind: str, node: Node, spec: dict[str, Any]) -> dict[str, Any]:
        """A document named by the id of a row, so that references remain valid."""
        found, named = node.get("id"), node.get("name")
        name = found or named
        document = new_document(kind, document_name(name.text() if name is not None else kind.lower()), spec)
        notes = (
            [named.text()]
            if named is not None and named.value != getattr(found, "value", named.value)
            else []
        )
        description = node.get("description")
        notes += [description.text()] if description is not None and description.value else []
        if notes:
            document["metadata"]["description"] = ": ".join(notes)
        for each in (named, description):
            if each is not None:
                each.use()
        self.draft.documents.append(document)
        self.draft.place(node, document)
        return document

    def _wal(self, node: Node, spec: dict[str, Any]) -> None:
        compress = node.at("wal.compression") or node.at("wal.compress")
        if compress is not None and isinstance(compress.value, bool):
            if not compress.use():
                self.draft.put(spec, "wal.compression", "none")
        elif compress is not None:
            try:
                self.draft.put(spec, "wal.compression", _compression(compress))
            except Unmapped as reason:
                self.draft.change(compress, reason.message)

    def _end(self, role: str, kind: str, node: Node) -> None:
        spec: dict[str, Any] = {}
        document = self._document(kind, node, spec)
        self.ends[(role, derive_id(document["metadata"]["name"]))] = (spec, node)
        self.draft.fill({}, node, ROW)
        self.draft.place(node, document)
        if (own := node.get("type")) is not None and own.value in ("source", "sink"):
            own.use()
        name = node.get("class")
        table = (SOURCES if role == "source" else SINKS).get(name.text().lower() if name is not None else "")
        config = node.get("config")
        if table is None:
            spec |= {"type": "generate", "rate": 1.0} if role == "source" else {"type": "drop"}
            message = f"there is no {role} for the class '{name.value if name is not None else ''}'"
            self.draft.change(config or node, message, f"replace the {role}", code="unknown_type")
        else:
            spec["type"] = table[0]
            spec |= table[2]
            self.draft.fill(spec, config, table[1])
            self._finish(role, config, spec)
        if (enabled := node.get("enabled")) is not None and not boolean(enabled):
            self.draft.change(
                enabled, "a pipeline that refers to it still runs", "set status: stopped", code="changed"
            )
        stream = node.get("stream")
        if stream is not None:
            self.draft.note(
                stream,
                f"the pipeline reads and writes its {role} itself, without a stream between",
                code="left_out",
            )
        if (auto := node.get("auto_create_stream")) is not None:
            self.draft.note(auto, "no stream is needed between the source and the pipeline", code="left_out")

    def _finish(self, role: str, config: Node | None, spec: dict[str, Any]) -> None:
        protocol = config.get("security_protocol") if config is not None else None
        if protocol is not None and protocol.text().upper().endswith("SSL"):
            spec.setdefault("security", {}).setdefault("tls", {})
        if spec["type"] == "file" and "path" not in spec:
            bucket = config.get("bucket") if config is not None else None
            prefix = config.get("prefix") if config is not None else None
            path = f"s3a://{bucket.text()}" if bucket is not None else "out"
            spec["path"] = f"{path}/{prefix.text()}" if prefix is not None else path
            if bucket is not None:
                self.draft.about(spec, *STORE_LOGIN)
        elif spec["type"] == "file" and role == "sink" and config is not None:
            node = config.get("path") or config.get("file_path") or config
            self.draft.change(
                node, f"'{spec['path']}' becomes a directory of files", "read it as a whole", code="changed"
            )

    def _task(self, node: Node) -> None:
        spec: dict[str, Any] = {}
        document = self._document("Task", node, spec)
        self.draft.fill({}, node, ROW)
        self.draft.place(node, document)
        program = Program()
        mode = node.get("mode") or node.get("type")
        queries = self._queries(node)
        if mode is not None and mode.text().lower() == "detection" and len(queries) > 1:
            self._rules(mode, queries, program)
            queries = []
        for text in queries:
            before = len(program.steps), len(program.refused)
            parse_program(str(text.use()), program)
            for stage, reason in program.refused[before[1] :]:
                self.draft.change(text, f"'{stage}' was left out: {reason.message}", reason.hint)
        steps = program.steps or [{"type": "filter", "where": "true"}]
        spec["processors"] = steps
        self.tasks[derive_id(document["metadata"]["name"])] = (spec, program, node)
        for name in (
            "source_stream",
            "input_stream",
            "sink_streams",
            "sink_stream",
            "output_streams",
            "sources",
            "sinks",
        ):
            if (found := node.get(name)) is not None:
                self.draft.note(
                    found,
                    "a pipeline hands events from task to task, without streams between",
                    code="left_out",
                )
        if (enabled := node.get("enabled")) is not None:
            enabled.use()

    def _rules(self, mode: Node, queries: list[Node], program: Program) -> None:
        """Add the rules of a detection as a filter: an event passes if any rule holds."""
        conditions = []
        for text in queries:
            rule = parse_program(str(text.use()), Program(read=program.read))
            if len(rule.steps) == 1 and rule.steps[0]["type"] == "filter" and not rule.refused:
                conditions.append(f"({rule.steps[0]['where']})")
            else:
                message = "a rule that is more than a condition was left out"
                self.draft.change(text, message, "make a task for it")
        program.steps.append({"type": "filter", "where": " OR ".join(conditions) or "false"})
        self.draft.change(
            mode, "events do not say which rule has matched", "make a task for each rule", code="changed"
        )

    def _queries(self, node: Node) -> list[Node]:
        """The programs of a task, or of the saved queries that it refers to."""
        for name in ("pdl", "query", "pdl_query"):
            if (found := node.get(name)) is not None and isinstance(found.value, str):
                return [found]
        listed = node.get("queries") or node.get("query_ids")
        made = []
        for item in listed.items if listed is not None else ():
            if item.is_map:
                inner = item.get("pdl") or item.get("query")
                made += [inner] if inner is not None else []
            else:
                saved = [
                    row for row in self._rows("queries") if item.value in (row.peek("id"), row.peek("name"))
                ]
                if saved and (inner := saved[0].get("pdl") or saved[0].get("query")) is not None:
                    item.use()
                    for name in ("id", "name"):
                        if (found := saved[0].get(name)) is not None:
                            self.draft.note(
                                found, "a saved query becomes a part of its tasks", code="left_out"
                            )
                    made.append(inner)
                else:
                    made.append(item)
        return made

    def _pipeline(self, node: Node) -> None:
        spec: dict[str, Any] = {}
        document = self._document("Pipeline", node, spec)
        self.draft.fill({}, node, ROW)
        self.draft.place(node, document)
        source = node.get("source_id") or node.get("source") or node.get("source_connector")
        if source is None:
            spec["source"] = {"type": "generate", "rate": 1.0}
            self.draft.about(document, "there is no source: numbers are generated", "add a source")
        else:
            spec["source"] = {"ref": derive_id(source.text())}
        tasks = node.get("task_ids") or node.get("tasks")
        names = [derive_id(str(each)) for each in tasks.use()] if tasks is not None and tasks.is_list else []
        if names:
            spec["tasks"] = names
        sinks = node.get("sink_ids") or node.get("sinks") or node.get("sink_connectors")
        refs = sinks.use() if sinks is not None else []
        spec["sinks"] = [
            {"ref": derive_id(str(each))} for each in (refs if isinstance(refs, list) else [refs])
        ]
        if not spec["sinks"]:
            spec["sinks"] = [{"type": "drop"}]
            self.draft.about(document, "there is no sink: events are dropped", "add a sink")
        if (enabled := node.get("enabled")) is not None and not boolean(enabled):
            document["status"] = "stopped"
        if source is not None:
            self._schema(spec["source"]["ref"], names)

    def _schema(self, source: str, tasks: list[str]) -> None:
        """Declare the columns that the tasks read: PADAS events have no schema, but SQL needs one."""
        spec, _ = self.ends.get(("source", source), ({}, self.root))
        if not spec or spec.get("type") in ("generate", "syslog") or "schema" in spec:
            return
        if self.draft.schema is not None:
            spec["schema"] = self.draft.schema
            return
        read: dict[str, str] = {}
        made: set[str] = set()
        for name in tasks:
            if (found := self.tasks.get(name)) is not None:
                program = found[1]
                read |= {
                    key: kind for key, kind in program.read.items() if key not in made and key not in read
                }
                made |= program.made
        ddl = ddl_of(read)
        spec["schema"] = ddl or "value STRING"
        columns = "of the tasks are declared" if ddl else "are known: 'value' stands for them"
        self.draft.about(spec, f"events have no schema: only the columns {columns}", "convert with --schema")
