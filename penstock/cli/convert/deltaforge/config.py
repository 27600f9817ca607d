"""Pipelines of DeltaForge: changes of databases through scripts and filters to sinks."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.cli.convert.deltaforge.conditions import OPS, field_condition, json_path, table_condition
from penstock.cli.convert.deltaforge.ends import BATCH, SINKS, SOURCES, SPEC
from penstock.cli.convert.deltaforge.scripts import FLATTEN, wrapped
from penstock.cli.convert.draft import Draft, Entry, To, Unmapped, new_document
from penstock.cli.convert.language.as_sql import text_literal
from penstock.cli.convert.language.steps import AS_TEXT
from penstock.cli.convert.located import Node
from penstock.cli.convert.remote import spread_url
from penstock.cli.convert.values import (
    STORE_LOGIN,
    as_text,
    comma_list,
    document_name,
    number,
    seconds,
    snake,
    text_map,
)

API = "deltaforge/v1"

TEMPLATE = re.compile(r"\$\{((?:source|after|before)\.[\w.]+|op|tenant_id)\}")
"""A value of the event in the name of a topic, stream or subject."""

LOWER_VARIABLE = re.compile(r"(?<!\$)\$\{(?=[a-z]\w*\})")
"""A placeholder of a JavaScript template that Penstock would mistake for a variable."""


def is_deltaforge(root: Node) -> bool:
    """Whether a document looks like a pipeline of DeltaForge."""
    if not root.is_map:
        return False
    if str(root.peek("apiVersion", "")).startswith("deltaforge/"):
        return True
    spec = root.get("spec")
    metadata = root.get("metadata")
    return spec is not None and metadata is not None and metadata.peek("tenant") is not None


def convert(draft: Draft, name: str) -> None:
    """Add the document of a pipeline to the draft."""
    root = draft.root
    spec: dict[str, Any] = {}
    document = new_document("Pipeline", name, spec)
    draft.documents.append(document)
    draft.place(root, document)
    for fixed in ("apiVersion", "kind"):
        if (node := root.get(fixed)) is not None:
            node.use()
    _metadata(draft, document)
    given = root.get("spec")
    if given is None:
        draft.about(document, "there is no spec, so no source and no sink")
        spec.update(source={"type": "generate", "rate": 1.0}, sinks=[{"type": "drop"}])
        return
    draft.place(given, spec)
    draft.fill({}, given, SPEC)
    draft.place(given, spec)
    _Pipeline(draft, given, spec).build()


def _metadata(draft: Draft, document: dict[str, Any]) -> None:
    metadata = draft.root.get("metadata")
    if metadata is None:
        return
    made = document["metadata"]
    if (found := metadata.get("name")) is not None:
        made["name"] = document_name(found.text())
    labels: dict[str, str] = {}
    if (tenant := metadata.get("tenant")) is not None:
        labels["tenant"] = tenant.text()
    for name in ("labels", "annotations"):
        if (node := metadata.get(name)) is not None and node.is_map:
            labels |= text_map(node)
    if labels:
        made["labels"] = labels


class _Pipeline:
    def __init__(self, draft: Draft, given: Node, spec: dict[str, Any]) -> None:
        self.draft, self.given, self.spec = draft, given, spec
        self.steps: list[dict[str, Any]] = []
        self.sinks: list[dict[str, Any]] = []
        self.columns: dict[str, str] = {}
        """Columns that templates of sinks need: name → path in the event."""

    def build(self) -> None:
        self._source()
        self.steps.append(dict(AS_TEXT))
        if (processors := self.given.get("processors")) is not None:
            for node in processors.items:
                self._processor(node)
        envelopes = self._sinks()
        self._envelope(envelopes)
        if self.columns:
            made = {name: f"get_json_object(value, '$.{path}')" for name, path in self.columns.items()}
            self.steps.append({"type": "map", "set": made})
        self.spec["processors"] = self.steps
        self.spec["sinks"] = self.sinks
        if (batch := self.given.get("batch")) is not None:
            made_batch: dict[str, Any] = {}
            self.spec["batch"] = made_batch
            self.draft.fill(made_batch, batch, BATCH)
        if (policy := self.given.get("commit_policy")) is not None:
            made_policy: dict[str, Any] = {}
            self.spec["commit_policy"] = made_policy
            self.draft.fill(made_policy, policy, {"mode": "mode", "quorum": To("quorum", number)})
        if (deadline := self.given.get("sink_batch_deadline_secs")) is not None:
            ms = seconds(deadline)
            for sink in self.sinks:
                sink["deadline_ms"] = ms

    def _source(self) -> None:
        node = self.given.get("source")
        several = self.given.get("sources")
        if node is None and several is not None and several.items:
            node = several.items[0]
            for more in several.items[1:]:
                self.draft.change(
                    more, "a pipeline has one source: this one was left out", "make another pipeline"
                )
        source: dict[str, Any] = {}
        self.spec["source"] = source
        kind = str(node.peek("type", "")) if node is not None else ""
        if node is None or kind not in SOURCES:
            source |= {"type": "generate", "rate": 1.0, "row": {"value": "'{}'"}}
            message = f"there is no source for the type '{kind}': numbers are generated instead"
            if node is not None:
                self.draft.place(node, source)
                self.draft.change(node, message, "replace the source", code="unknown_type")
            else:
                self.draft.about(source, "there is no source: numbers are generated instead", "add a source")
            return
        node.children["type"].use()
        source["type"], table = SOURCES[kind]
        self.draft.place(node, source)
        config = node.get("config") or node
        self.draft.fill(source, config, table)
        if "snapshot" not in source:
            source["snapshot"] = "never"
        outbox = config.at("outbox.tables")
        if outbox is not None:
            self.draft.change(
                outbox, "outbox events are not marked", "add an outbox step after a decode step"
            )

    # Processors

    def _processor(self, node: Node) -> None:
        kind = str(node.peek("type", ""))
        config = node.get("config") or node
        made: list[dict[str, Any]] = []
        try:
            if "type" in node.children:
                node.children["type"].use()
            if kind == "javascript":
                made.append(self._script(config))
            elif kind == "filter":
                made.append({"type": "filter", "where": self._condition(config)})
            elif kind == "flatten":
                made.append(self._flatten(config))
            else:
                hints = {"outbox": "add a decode step and an outbox step"}
                raise Unmapped(
                    f"the processor '{kind}' was left out", hints.get(kind, "write it as a javascript step")
                )
        except Unmapped as reason:
            self.draft.change(node, reason.message, reason.hint)
        if (found := node.get("id")) is not None and re.fullmatch(r"[\w-]+", found.text()) and made:
            made[0]["id"] = found.text()
        self.steps += made
        if made:
            self.draft.place(node, made[0])

    def _script(self, config: Node) -> dict[str, Any]:
        inline = config.get("inline")
        if inline is None:
            raise Unmapped("a processor without 'inline' was left out", "name the script in 'file'")
        script = inline.text()
        found = re.search(r"function\s+(processBatch|process)\s*\(", script)
        if found is None:
            raise Unmapped(
                "a script without a function processBatch(events) was left out", "wrap it in processBatch"
            )
        if LOWER_VARIABLE.search(script):
            self.draft.note(
                inline, "templates such as ${name} are written as $${name}, since ${name} is a variable"
            )
            script = LOWER_VARIABLE.sub("$${", script)
        step: dict[str, Any] = {"type": "javascript", "inline": wrapped(script, found[1])}
        limits: dict[str, Any] = {}
        self.draft.fill(
            limits,
            config.get("limits"),
            {name: To(name, number) for name in ("cpu_ms", "mem_mb", "timeout_ms")},
        )
        if limits:
            step["limits"] = limits
        return step

    def _condition(self, config: Node) -> str:
        parts = []
        if (ops := config.get("ops")) is not None and ops.value:
            letters = ", ".join(text_literal(OPS.get(name, name)) for name in comma_list(ops))
            parts.append(f"{json_path('op')} IN ({letters})")
        for name, word in (("include", ""), ("exclude", "NOT ")):
            tables = config.at(f"tables.{name}")
            if tables is not None and tables.value:
                names = " OR ".join(f"({table_condition(each)})" for each in comma_list(tables))
                parts.append(f"{word}({names})")
        if (fields := config.get("fields")) is not None and fields.items:
            match = config.get("match")
            joiner = " OR " if match is not None and match.text() == "any" else " AND "
            parts.append("(" + joiner.join(field_condition(each) for each in fields.items) + ")")
        if (match := config.get("match")) is not None and match.text() not in ("all", "any"):
            self.draft.change(match, "all conditions must hold", code="changed")
        return " AND ".join(parts) or "true"

    def _flatten(self, config: Node) -> dict[str, Any]:
        defaults = {
            "on_collision": "last", "empty_object": "preserve", "empty_list": "preserve", "lists": "preserve",
        }  # fmt: skip
        for name, default in defaults.items():
            if (node := config.get(name)) is not None and node.text() != default:
                self.draft.change(node, f"'{default}' is used", code="changed")
        separator, depth = config.get("separator"), config.get("max_depth")
        made = FLATTEN.replace("SEPARATOR", json.dumps(separator.text() if separator is not None else "__"))
        return {
            "type": "javascript",
            "inline": made.replace("DEPTH", str(number(depth)) if depth is not None else "Infinity"),
        }

    # Sinks

    def _sinks(self) -> list[tuple[Node, str]]:
        """Add the sinks. Returns the envelope of each, with its node."""
        envelopes = []
        node = self.given.get("sinks")
        for each in node.items if node is not None else ():
            kind = str(each.peek("type", ""))
            config = each.get("config") or each
            sink: dict[str, Any] = {}
            self.sinks.append(sink)
            self.draft.place(each, sink)
            found = config.get("id") or each.get("id")
            if found is not None:
                sink["id"] = snake(found.text())
            if kind not in SINKS:
                sink["type"] = "drop"
                message = f"there is no sink for the type '{kind}': events are dropped"
                self.draft.change(each, message, "replace the sink", code="unknown_type")
                continue
            each.children["type"].use()
            sink["type"], table = SINKS[kind]
            self.draft.fill(sink, config, table)
            own = config.get("batch_timeout_secs")
            if own is not None and self.given.get("sink_batch_deadline_secs") is not None:
                self.draft.note(own, "the deadline for all sinks applies", code="left_out")
            spread_url(self.draft, sink, config.get("uri") or config.get("url") or config)
            if kind == "s3":
                self._s3(config, sink)
            if kind == "kafka" and (client := config.get("client_conf")) is not None:
                self._client(client, sink)
            for name in ("topic", "key", "subject", "url"):
                if isinstance(sink.get(name), str):
                    sink[name] = self._templated(sink[name], braces=kind == "http")
            if (key := config.get("key")) is not None:
                self._key(key)
            if (envelope := config.get("envelope")) is not None:
                kind_node = envelope.get("type") or envelope
                envelopes.append((envelope, kind_node.text()))
            elif kind != "s3":
                envelopes.append((each, "native"))
        if not self.sinks:
            self.sinks.append({"type": "drop"})
            self.draft.about(self.sinks[0], "there is no sink: events are dropped", "add a sink")
        return envelopes

    def _client(self, client: Node, sink: dict[str, Any]) -> None:
        table: dict[str, Entry] = {
            "sasl.username": "security.sasl.username",
            "sasl.password": "security.sasl.password",
            "sasl.mechanism": "security.sasl.mechanism",
            "sasl.mechanisms": "security.sasl.mechanism",
            "ssl.ca.location": "security.tls.ca_file",
        }
        protocol = client.get("security.protocol")
        if protocol is not None and protocol.text().upper().endswith("SSL"):
            sink.setdefault("security", {}).setdefault("tls", {})
        self.draft.fill(sink, client, table)
        rest = [name for name in client.children if name not in table and name != "security.protocol"]
        for name in rest:
            if name in ("compression.type", "compression.codec", "linger.ms", "batch.size", "client.id"):
                key = "compression.type" if name.startswith("compression") else name
                self.draft.put(sink, "options", {key: as_text(client.children[name])})

    def _s3(self, config: Node, sink: dict[str, Any]) -> None:
        bucket, prefix, form = config.get("bucket"), config.get("prefix"), config.get("format")
        path = f"s3a://{bucket.text() if bucket is not None else 'bucket'}"
        sink["path"] = f"{path}/{prefix.text()}" if prefix is not None else path
        sink["format"] = "parquet" if form is not None and form.text() == "parquet" else "text"
        if form is not None and form.text() not in ("parquet", "jsonl", "json"):
            self.draft.change(form, "files are lines of JSON", code="changed")
        for name in ("endpoint", "region"):
            if (node := config.get(name)) is not None:
                sink.setdefault("store", {})[name] = node.text()
        self.draft.about(sink, *STORE_LOGIN)

    def _templated(self, text: str, *, braces: bool) -> str:
        def column(found: re.Match[str]) -> str:
            name = snake(found[1].replace(".", "_"))
            self.columns[name] = found[1]
            return f"{{{name}}}"

        text = TEMPLATE.sub(column, text)
        return re.sub(r"\{((?:source|after|before)\.[\w.]+)\}", column, text) if braces else text

    def _key(self, key: Node) -> None:
        found = TEMPLATE.fullmatch(key.text())
        if found is None:
            self.draft.change(
                key, "only a key that is one value has an equivalent", "set `_key` in a map step"
            )
        elif self.columns.get("_key", found[1]) != found[1]:
            self.draft.change(key, "the key of another sink is used for all", code="changed")
        else:
            self.columns["_key"] = found[1]

    def _envelope(self, envelopes: list[tuple[Node, str]]) -> None:
        """Set the envelope of events: a pipeline has one, while DeltaForge has one for each sink."""
        kinds = [kind for _, kind in envelopes] or ["native"]
        chosen = kinds[0]
        for node, kind in envelopes[1:]:
            if kind != chosen:
                self.draft.change(
                    node, f"the envelope '{chosen}' of the first sink is used for all", code="changed"
                )
        for node, kind in envelopes:
            if kind == "cloudevents" and (prefix := node.get("type_prefix")) is not None:
                self.draft.change(prefix, "types of CloudEvents begin with 'penstock.row'", code="changed")
        if self.spec["source"]["type"] == "generate":
            return
        self.spec["source"]["envelope"] = "cloudevents" if chosen == "cloudevents" else "debezium"
        if chosen == "debezium":
            wrap = """concat('{"payload":', value, '}')"""
            self.steps.append({"type": "map", "set": {"value": wrap}})
            self.columns = {
                name: path if name == "" else f"payload.{path}" for name, path in self.columns.items()
            }
