"""Inputs of Bento as sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.cli.convert.bento.build import Build
from penstock.cli.convert.bento.ends import INPUTS
from penstock.cli.convert.bento.processors import processors
from penstock.cli.convert.draft import Unmapped, new_document
from penstock.cli.convert.language.as_script import Assignment
from penstock.cli.convert.language.as_sql import to_sql
from penstock.cli.convert.language.bloblang import parse_mapping
from penstock.cli.convert.language.expressions import (
    Binary,
    Call,
    Expression,
    Field,
    Literal,
    Members,
    rebuilt,
)
from penstock.cli.convert.language.steps import AS_TEXT, Steps, columns_of
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import boolean, comma_list, milliseconds, number


def inputs(build: Build, node: Node | None) -> dict[str, Any]:
    """The source of a pipeline for an input, with the steps that belong to it."""
    if node is None:
        build.draft.about(build.spec, "there is no input: numbers are generated instead", "add a source")
        build.steps.columns = ["seq", "time"]
        return {"type": "generate", "rate": 1.0}
    node = build.resolved(node, "input_resources")
    kind, config = build.component(node)
    inner = config.get("inputs") if kind == "broker" and config.is_map else None
    if inner is not None and len(inner.items) == 1:
        node = inner.items[0]
        kind, config = build.component(node)
        inner = None
    source = _input(build, node, kind, config) if inner is None else _several(build, config, inner)
    if (steps := node.get("processors")) is not None:
        processors(build, steps)
    return source


def _several(build: Build, broker: Node, inputs: Node) -> dict[str, Any]:
    """Several inputs publish into a stream, which the pipeline reads."""
    stream = f"{build.name}-events"
    if (copies := broker.get("copies")) is not None:
        build.draft.note(copies, "a Source runs once: Spark decides how many tasks it has")
    build.batching(broker.get("batching"))
    schema = {"schema": build.draft.schema} if build.draft.schema else {}
    stream_document = new_document("Stream", stream, schema)
    made = []
    for i, each in enumerate(inputs.items, 1):
        kind, config = build.component(each)
        if (own := each.get("processors")) is not None:
            build.draft.change(
                own, "processors of one of several inputs were left out", "put them into the pipeline"
            )
        build.steps = Steps()
        source = _input(build, each, kind, config)
        if build.steps.columns is not None and build.draft.schema is None:
            build.draft.change(each, "columns of this input become a JSON text in the stream", code="changed")
        spec = {**source, "stream": stream}
        label = each.peek("label") or f"{build.name}-{i}"
        document = new_document("Source", label, spec)
        build.draft.place(each, spec)
        build.draft.place(config, spec)
        if (found := each.get("label")) is not None:
            found.use()
        made.append(document)
    build.draft.documents[:0] = [stream_document, *made]
    build.steps = Steps()
    _raw_or_typed(build, raw=True)
    return {"type": "stream", "stream": stream}


def _input(build: Build, node: Node, kind: str, config: Node) -> dict[str, Any]:
    if (label := node.get("label")) is not None:
        build.draft.note(label, "a source that is part of a pipeline has no name", code="left_out")
    if kind == "generate":
        return _generate(build, config)
    end = INPUTS.get(kind)
    if end is None:
        build.draft.change(
            config, f"there is no source for the input '{kind}': numbers are generated instead",
            "replace the source", code="unknown_type",
        )  # fmt: skip
        source: dict[str, Any] = {"type": "generate", "rate": 1.0, "row": {"value": "'{}'"}}
        build.draft.place(config, source)
        return source
    source = {"type": end.type, **end.fixed}
    build.fill(source, config, end)
    special: dict[str, Callable[[Build, Node, dict[str, Any]], None]] = {
        "kafka_franz": _kafka_input, "redpanda": _kafka_input, "kafka": _kafka_input,
        "file": _file_input, "http_client": _poll_input, "postgres_cdc": _cdc_tables,
    }  # fmt: skip
    if kind in special:
        special[kind](build, config, source)
    if end.type == "nats" and "jetstream" not in source:
        source["jetstream"] = str(source.get("subject", "events")).split(".")[0].upper()
        message = f"the stream of the subject is not named: '{source['jetstream']}' is used"
        build.draft.change(config, message, "set 'jetstream' of the source", code="changed", whole=False)
    if config.is_map:
        _scanner(build, config, source)
        build.batching(config.get("batching"))
    if end.type in ("postgres_cdc", "mysql_cdc"):
        build.steps.columns = ["op", "table", "before", "after", "position", "tx", "time", "id"]
        build.draft.note(config.get("dsn") or config, "events have the columns op, table, before, after, "
                        "position, tx, time and id")  # fmt: skip
    else:
        _raw_or_typed(build, raw=end.raw, source=source)
    return source


def _raw_or_typed(build: Build, *, raw: bool, source: dict[str, Any] | None = None) -> None:
    """Start with the columns of `--schema`, or with a single text column."""
    if build.draft.schema is not None:
        build.steps.columns = columns_of(build.draft.schema)
        if source is not None and source["type"] != "spark":
            source["schema"] = build.draft.schema
            if "format" in source and source["format"] == "text":
                source["format"] = "json"
    elif source is not None and source.get("format") == "csv":
        build.steps.columns = []
        build.steps.to_text()
    elif raw:
        build.steps.made.append(dict(AS_TEXT))


def _generate(build: Build, config: Node) -> dict[str, Any]:
    source: dict[str, Any] = {"type": "generate"}
    build.draft.place(config, source)
    if (interval := config.get("interval")) is not None and (rate := _rate(build, interval)) is not None:
        source["rate"] = rate
    elif interval is None:
        source["rate"] = 1.0
    if (count := config.get("count")) is not None and (limit := number(count)) > 0:
        source["count"] = limit
    if (size := config.get("batch_size")) is not None:
        build.draft.note(size, "batches are made by `batch:`, not by the source")
    mapping = config.get("mapping")
    if mapping is None:
        return source
    try:
        assignments = [
            Assignment(each.target, each.path, rebuilt(each.value, _counted), each.line)
            for each in parse_mapping(mapping.text())
        ]
    except Unmapped as reason:
        build.refuse(mapping, reason)
        source["row"] = {"value": "'{}'"}
        return source
    try:
        source["row"] = _row(assignments)
        build.steps.columns = list(source["row"])
    except Unmapped:
        source["row"] = {"value": "'{}'"}
        try:
            build.steps.mapping(assignments, keeps=False)
        except Unmapped as reason:
            build.refuse(mapping, reason)
    return source


def _rate(build: Build, interval: Node) -> float | None:
    text = interval.text().strip()
    text = text.removeprefix("@every ").strip()
    try:
        ms = milliseconds(Node(text, interval.line, interval.path)) if text else 0
    except Unmapped:
        build.draft.change(
            interval,
            "a schedule has no equivalent: one event a minute is made",
            "set 'rate'",
            code="changed",
        )
        return 1 / 60
    return 1000 / ms if ms else None


def _kafka_input(build: Build, config: Node, source: dict[str, Any]) -> None:
    topics = source.get("topics", [])
    if any(":" in topic for topic in topics):
        build.draft.change(
            config.get("topics") or config, "partitions of topics cannot be chosen: all are read",
            code="changed",
        )  # fmt: skip
        source["topics"] = [topic.partition(":")[0] for topic in topics]
    if (regexp := config.get("regexp_topics")) is not None and boolean(regexp):
        source["pattern"] = "|".join(source.pop("topics", []))


def _file_input(build: Build, config: Node, source: dict[str, Any]) -> None:
    paths = config.get("paths")
    found = comma_list(paths) if paths is not None else []
    source["path"] = found[0] if found else "in"
    if len(found) > 1 and paths is not None:
        build.draft.change(
            paths, f"only '{found[0]}' is read", "use a directory or a pattern such as in/*.json",
            code="changed",
        )  # fmt: skip


def _poll_input(build: Build, config: Node, source: dict[str, Any]) -> None:
    stream = config.get("stream")
    if stream is not None and stream.peek("enabled") is True:
        build.draft.change(stream, "a response that never ends is not read as a stream")


def _cdc_tables(build: Build, config: Node, source: dict[str, Any]) -> None:
    schema, tables = config.get("schema"), config.get("tables")
    prefix = f"{schema.text()}." if schema is not None else ""
    if tables is not None:
        source["tables"] = [name if "." in name else prefix + name for name in comma_list(tables)]


def _scanner(build: Build, config: Node, source: dict[str, Any]) -> None:
    scanner = config.get("scanner") or config.get("codec")
    if scanner is None:
        return
    kind = next(iter(scanner.children), "lines") if scanner.is_map else scanner.text().split(":")[0]
    if kind == "csv" and source["type"] == "file":
        source["format"] = "csv"
        if build.draft.schema is None:
            build.draft.note(scanner, "columns are inferred from the files when the document is saved")
        scanner.use()
    elif kind == "lines" and not (scanner.is_map and any(True for _ in scanner.children["lines"].children)):
        scanner.use()
    else:
        build.draft.change(scanner, "each line is an event", code="changed")


def _row(assignments: list[Assignment]) -> dict[str, str]:
    """The columns of generated events in SQL."""
    row: dict[str, str] = {}
    for each in assignments:
        match each:
            case Assignment("root", (), Members(members)):
                row |= {name: to_sql(value) for name, value in members}
            case Assignment("root", (name,), value):
                row[name] = to_sql(value)
            case Assignment("root", (), Literal(str() as text)):
                row["value"] = to_sql(Literal(text))
            case _:
                raise Unmapped("not in SQL")
    if not row:
        raise Unmapped("an empty event")
    return row


def _counted(part: Expression) -> Expression:
    """Replace a counter, which starts at 1, by the sequence number of the generated event."""
    if isinstance(part, Call) and part.name in ("counter", "count"):
        return Binary("+", Field(("seq",)), Literal(1))
    return part
