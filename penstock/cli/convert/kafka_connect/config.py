"""A connector of Kafka Connect as a pipeline: its system at one end, Kafka at the other."""

from __future__ import annotations

import re
from typing import Any

from penstock.cli.convert.draft import Draft, Note, Table, new_document
from penstock.cli.convert.kafka_connect.classes import TUNING, Connector, connector_of
from penstock.cli.convert.kafka_connect.transforms import Chain, apply
from penstock.cli.convert.language.steps import AS_TEXT, Steps, columns_of, select_of
from penstock.cli.convert.located import Node
from penstock.cli.convert.remote import spread_url
from penstock.cli.convert.values import GROUP, STORE_LOGIN, comma_list, document_name, snake

PLAIN = ("JsonConverter", "StringConverter", "ByteArrayConverter")
"""Converters whose values are JSON or any text."""

PROVIDER = re.compile(r"\$\{([\w-]+):(?:([^}:]*):)?([^}]*)\}")
"""A value of a config provider, such as `${file:/secrets.properties:password}`."""

COMMON: Table = {
    "tasks.max": Note("Spark decides how many tasks run at once"),
    "errors.tolerance": Note("events that can't be processed go to the dead letters"),
    "errors.log.enable": TUNING,
    "errors.log.include.messages": TUNING,
    "errors.retry.timeout": TUNING,
    "errors.retry.delay.max.ms": TUNING,
    "errors.deadletterqueue.topic.name": Note("dead letters are kept in a stream of the pipeline"),
    "errors.deadletterqueue.topic.replication.factor": TUNING,
    "errors.deadletterqueue.context.headers.enable": TUNING,
    "header.converter": TUNING,
    "key.converter.schemas.enable": TUNING,
    "confluent.topic.bootstrap.servers": TUNING,
    "confluent.topic.replication.factor": TUNING,
    "confluent.license": TUNING,
}


def is_connector(root: Node) -> bool:
    """Whether a document looks like the configuration of a connector."""
    config = root.get("config") if root.is_map else None
    return root.is_map and (
        "connector.class" in root.children or (config is not None and "connector.class" in config.children)
    )


def convert(draft: Draft, name: str) -> None:
    """Add the documents of a connector to the draft."""
    root = draft.root
    config = root.get("config")
    config = config if config is not None and config.is_map else root
    for node in config.children.values():
        _provided(draft, node)
    for found in (config.get("name"), root.get("name")):
        if found is not None:
            name = document_name(found.text())
    spec: dict[str, Any] = {}
    document = new_document("Pipeline", name, spec)
    draft.documents.append(document)
    draft.place(root, document)
    draft.place(config, spec)
    draft.fill({}, config, COMMON)
    draft.place(config, spec)
    kind = config.get("connector.class")
    connector = connector_of(kind.text()) if kind is not None else None
    if connector is None:
        message = f"there is no connector for the class '{kind.value if kind is not None else ''}'"
        draft.change(kind or config, message, "replace the source or sink", code="unknown_type")
        is_sink = "topics" in config.children or "topics.regex" in config.children
        connector = (
            Connector("sink", "drop", {}) if is_sink else Connector("source", "generate", {}, {"rate": 1.0})
        )
    made: dict[str, Any] = {"type": connector.type, **connector.fixed}
    draft.fill(made, config, connector.table)
    own = {key: made.pop(key) for key in [key for key in made if key.startswith("$")]}
    if "$batch" in own:
        spec["batch"] = own.pop("$batch")
    if "$host" in own:
        made["url"] = f"amqp://{own['$host']}:{own.get('$port', 5672)}"
    spread_url(draft, made, config)
    if connector.type in ("mqtt", "amqp") and connector.role == "source":
        made["format"] = "text"
    _Pipeline(draft, config, connector, made, own, spec).build()


class _Pipeline:
    def __init__(
        self,
        draft: Draft,
        config: Node,
        connector: Connector,
        made: dict[str, Any],
        own: dict[str, Any],
        spec: dict[str, Any],
    ) -> None:
        self.draft, self.config, self.connector = draft, config, connector
        self.made, self.own, self.spec = made, own, spec
        self.steps = Steps()

    def build(self) -> None:
        batch = self.spec.pop("batch", None)
        if self.connector.role == "source":
            self._source()
        else:
            self._sink()
        if self.steps.made:
            self.spec["processors"] = self.steps.made
            sinks = self.spec.pop("sinks")
            self.spec["sinks"] = sinks
        if batch:
            self.spec["batch"] = batch

    # From a system to Kafka

    def _source(self) -> None:
        made, config = self.made, self.config
        self.spec["source"] = made
        tables = self._prepare_source()
        raw = self.connector.type not in ("sql", "generate", "file")
        if raw:
            self.steps.made.append(dict(AS_TEXT))
        elif self.connector.type == "sql":
            self.steps.columns = columns_of(self.draft.schema) if self.draft.schema else []
            if not self.steps.columns and config.get("transforms") is not None:
                self.steps.to_text()
        chain = Chain(self.draft, self.steps)
        cdc = self.connector.type in ("postgres_cdc", "mysql_cdc")
        prefix = str(self.own.get("$prefix", ""))
        if cdc and (node := config.get("topic.prefix") or config.get("database.server.name")) is not None:
            self.draft.note(node, "events name the pipeline as their source, and not this prefix")
        topics = (
            [self.own["$topic"]]
            if "$topic" in self.own
            else [f"{prefix}.{table}" if cdc else prefix + table for table in tables]
        )
        chain.topics = topics
        several = cdc and (len(tables) != 1 or "*" in tables[0])
        if several:
            part = "db" if self.connector.type == "mysql_cdc" else "schema"
            self.steps.made[-1] = {
                "type": "map",
                "set": {
                    "value": "CAST(value AS STRING)",
                    "topic": f"concat_ws('.', get_json_object(value, '$.source.{part}'), "
                    "get_json_object(value, '$.source.table'))",
                },
                "keep": False,
            }
        apply(chain, config)
        if chain.unwraps:
            self.steps.made.insert(1, {"type": "map", "set": {"value": "get_json_object(value, '$.after')"}})
        self._converters(writes=True)
        topic = chain.routed(topics[0]) if topics else prefix or "events"
        if several:
            topic = f"{prefix}.{{topic}}"
            if chain.replacements:
                found = config.get("transforms") or config
                self.draft.change(
                    found, "a router of several topics was left out", "set the topic of the sink"
                )
        sink: dict[str, Any] = {"type": "kafka", "brokers": self._brokers(), "topic": topic}
        self.spec["sinks"] = [sink]

    def _prepare_source(self) -> list[str]:
        """Complete the source. Returns the tables that it reads."""
        made, own = self.made, self.own
        tables: list[str] = made.get("tables") or own.get("$tables") or []
        if self.connector.type == "mysql_cdc" and "$databases" in own and "tables" not in made:
            tables = made["tables"] = [f"{name}.*" for name in own["$databases"]]
        if "$tls" in own and str(own["$tls"]).lower() not in ("disabled", "preferred"):
            made["tls"] = {}
        if self.connector.type == "sql":
            return self._prepare_query(tables)
        if self.connector.type in ("postgres_cdc", "mysql_cdc") and not tables:
            self.draft.about(made, "no tables are named: all tables are read", "name the tables")
        return tables

    def _prepare_query(self, tables: list[str]) -> list[str]:
        made, own, config = self.made, self.own, self.config
        self._login(made)
        if tables:
            made["table"] = tables[0]
        if len(tables) > 1:
            node = config.get("table.whitelist") or config.get("table.include.list") or config
            self.draft.change(node, f"only the table '{tables[0]}' is read", "make a pipeline for each table")
        column = own.get("$incrementing") or own.get("$timestamp")
        if column:
            made["column"] = column
        else:
            made["mode"] = "snapshot"
            made.pop("poll_ms", None)
        if "query" in made:
            made["key"] = [] if column and own.get("$incrementing") else ["id"]
        mode = config.get("mode")
        if mode is not None and "+" in str(own.get("$mode")):
            self.draft.change(mode, f"new rows are found by '{column}' alone", code="changed")
            if (stamp := config.get("timestamp.column.name")) is not None:
                self.draft.change(stamp, "rows that were changed later are not read again", code="changed")
        elif mode is not None and own.get("$mode") == "bulk":
            self.draft.change(mode, "the table is read once", "name a column that grows", code="changed")
        return tables

    # From Kafka to a system

    def _sink(self) -> None:
        config, made = self.config, self.made
        topics, regex = config.get("topics"), config.get("topics.regex")
        source: dict[str, Any] = {"type": "kafka", "brokers": self._brokers()}
        names = comma_list(topics) if topics is not None else []
        if regex is not None:
            source["pattern"] = regex.text()
        else:
            source["topics"] = names or ["events"]
        self.spec["source"] = source
        self.spec["sinks"] = [made]
        self.draft.place(topics, source)
        if (found := topics or regex) is not None:
            self.draft.note(found, GROUP.message, GROUP.hint, code="position")
        self._formats(source)
        chain = Chain(self.draft, self.steps, names)
        apply(chain, config)
        if chain.unwraps:
            self.steps.made.append(
                {"type": "map", "set": {"value": "get_json_object(value, '$.after')"}, "keep": False}
            )
        prepare = {"sql": self._rows, "file": self._files, "redis": self._redis}.get(self.connector.type)
        if prepare is not None:
            prepare(chain, names)

    def _formats(self, source: dict[str, Any]) -> None:
        """Set how values in Kafka are decoded."""
        converter = self.config.get("value.converter")
        schemas = self.config.get("value.converter.schemas.enable")
        name = converter.text().rsplit(".", 1)[-1] if converter is not None else "JsonConverter"
        if (key := self.config.get("key.converter")) is not None:
            self.draft.note(key, "a key is text", code="left_out")
        if name == "AvroConverter":
            registry = self.config.get("value.converter.schema.registry.url")
            source["format"] = "bytes"
            url = registry.text() if registry is not None else ""
            decode: dict[str, Any] = {
                "type": "decode",
                "format": "avro",
                "registry": {"url": url},
                "keep": False,
            }
            self.steps.made.append(decode)
            if (ddl := self.draft.schema) is not None:
                decode["schema"] = ddl
                self.steps.columns = columns_of(ddl)
            else:
                self.steps.columns = []
                self.steps.to_text()
            return
        if converter is not None and name not in PLAIN:
            self.draft.change(converter, "values are read as text", "add a decode step", code="changed")
        wrapped = name == "JsonConverter" and (schemas is None or str(schemas.value).lower() == "true")
        if schemas is not None:
            schemas.use()
        if self.draft.schema is not None and name == "JsonConverter":
            ddl = self.draft.schema
            self.steps.columns = columns_of(ddl)
            source["schema"] = f"payload STRUCT<{ddl}>" if wrapped else ddl
            if wrapped:
                fields = {name: f"payload.{name}" for name in self.steps.columns}
                self.steps.made.append({"type": "map", "set": fields, "keep": False})
            return
        source["format"] = "text"
        step: dict[str, Any] = dict(AS_TEXT)
        if wrapped and converter is not None:
            step = {"type": "map", "set": {"value": "get_json_object(value, '$.payload')"}, "keep": False}
        self.steps.made.append(step)

    def _rows(self, chain: Chain, topics: list[str]) -> None:
        made, own, config = self.made, self.own, self.config
        self._login(made)
        template = str(own.get("$table", "${topic}"))
        topic = chain.routed(topics[0]) if topics else "events"
        made["table"] = template.replace("${topic}", snake(topic) if "." in topic else topic)
        if len(topics) > 1 and "${topic}" in template:
            found = config.get("topics") or config
            self.draft.change(
                found, f"all topics are written to '{made['table']}'", "make a pipeline for each topic"
            )
        mode = own.get("$mode", "insert")
        made["mode"] = "upsert" if mode in ("upsert", "update") else "insert"
        if mode == "update" and (node := config.get("insert.mode")) is not None:
            self.draft.change(node, "rows that do not exist are inserted", code="changed")
        if (deletes := config.get("delete.enabled")) is not None:
            if str(deletes.value).lower() == "true":
                self.draft.change(deletes, "rows are not deleted", "use mode: sync with an op column")
            deletes.use()
        if made["mode"] == "insert":
            if made.pop("key", None) is not None:
                node = config.get("pk.fields") or config.get("primary.key.fields") or config
                self.draft.note(node, "rows that are only inserted need no key")
        elif "key" not in made:
            made["key"] = ["id"]
            self.draft.about(made, "the key of rows is not known: 'id' is used", "set 'key'")
        node = config.get("pk.mode") or config.get("primary.key.mode")
        if own.get("$pk_mode", "none") not in ("none", "record_value") and node is not None:
            self.draft.change(node, "the key of rows is taken from the value", code="changed")
        if own.get("$create") or own.get("$evolve"):
            made["create"] = "evolve" if own.get("$evolve") else "if_missing"
        self._columns(own.get("$fields") or [])

    def _columns(self, wanted: list[str]) -> None:
        """Add a step that provides the known columns for a sink of rows."""
        known = list(dict.fromkeys([*self.made.get("key", []), *wanted]))
        if self.steps.columns is not None:
            if wanted:
                self.steps.made.append({"type": "map", "set": select_of(wanted), "keep": False})
            return
        ddl = ", ".join(f"{name} STRING" for name in known) or "value STRING"
        self.steps.made.append({"type": "decode", "format": "json", "schema": ddl, "keep": False})
        what = f"only {', '.join(known)}, as STRING" if known else "no column"
        self.draft.about(
            self.steps.made[-1],
            f"the columns of the events are not known: {what}",
            "convert with --schema, or set the columns in the decode step",
        )

    def _files(self, chain: Chain, topics: list[str]) -> None:
        made, own, config = self.made, self.own, self.config
        if "$bucket" in own:
            directory = str(own.get("$directory", "topics"))
            made["path"] = f"s3a://{own['$bucket']}/{directory}/{topics[0] if topics else ''}".rstrip("/")
            name = str(own.get("$format", "JsonFormat")).rsplit(".", 1)[-1]
            made["format"] = "text" if self.steps.columns is None else "json"
            if name == "ParquetFormat":
                made["format"] = "parquet"
            elif name != "JsonFormat" and (node := config.get("format.class")) is not None:
                self.draft.change(node, "files are lines of text or JSON", code="changed")
            self.draft.about(made, *STORE_LOGIN)
            return
        if "path" not in made:
            made["path"] = "out"
        if self.steps.columns is not None:
            made["format"] = "json"
        if (node := config.get("file")) is not None:
            what = f"'{made['path']}' becomes a directory of files, a few for each batch"
            self.draft.change(node, what, "read it as a whole", code="changed")

    def _redis(self, chain: Chain, topics: list[str]) -> None:
        key = str(self.made.get("key", "${topic}"))
        self.made["key"] = key.replace("${topic}", topics[0] if topics else "events")

    # Both ways

    def _converters(self, *, writes: bool) -> None:
        """Convert the settings for writing to Kafka: values are always JSON without a schema."""
        for end in ("key", "value"):
            converter = self.config.get(f"{end}.converter")
            schemas = self.config.get(f"{end}.converter.schemas.enable")
            name = converter.text().rsplit(".", 1)[-1] if converter is not None else ""
            if end == "value" and name in ("AvroConverter", "ProtobufConverter") and converter is not None:
                hint = "add an encode step with a registry"
                self.draft.change(converter, "values are written as JSON", hint, code="changed")
                if (registry := self.config.get("value.converter.schema.registry.url")) is not None:
                    self.draft.note(registry, "JSON needs no registry", code="left_out")
            elif converter is not None and name not in PLAIN:
                self.draft.change(converter, f"a {end} is written as JSON or text", code="changed")
            elif end == "value" and schemas is not None and str(schemas.value).lower() == "true":
                message = "values are written without a schema around them"
                self.draft.change(schemas, message, "read them with schemas.enable=false", code="changed")
            elif schemas is not None:
                schemas.use()

    def _login(self, made: dict[str, Any]) -> None:
        """Put the user into the URL of a database."""
        user = self.config.get("connection.user") or self.config.get("connection.username")
        if user is not None and "url" in made and "@" not in made["url"]:
            made["url"] = made["url"].replace("://", f"://{user.text()}@", 1)

    def _brokers(self) -> list[str]:
        if "$brokers" in self.own:
            return list(self.own["$brokers"])
        node = self.config.get("connector.class") or self.config
        message = "the brokers of the Connect worker are not in this file: replaced by ${KAFKA_BROKERS}"
        self.draft.note(node, message, "export KAFKA_BROKERS where the flow runs", code="variable")
        return ["${KAFKA_BROKERS}"]


def _provided(draft: Draft, node: Node) -> None:
    """Replace values of config providers by variables."""
    if not isinstance(node.value, str):
        return

    def variable(found: re.Match[str]) -> str:
        name = snake(found[3]).upper()
        draft.note(
            node,
            f"the value of a config provider was replaced by ${{{name}}}",
            f"export {name}",
            code="variable",
        )
        return f"${{{name}}}"

    replaced = PROVIDER.sub(variable, node.value)
    if replaced != node.value:
        node.value, node.used = replaced, False
