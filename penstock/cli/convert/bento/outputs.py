"""Outputs of Bento as sinks, and the steps that a sink requires."""

from __future__ import annotations

import re
from typing import Any

from penstock.cli.convert.bento.build import Build
from penstock.cli.convert.bento.ends import OUTPUTS
from penstock.cli.convert.bento.processors import processors
from penstock.cli.convert.draft import Unmapped
from penstock.cli.convert.language.as_script import Assignment, routing_script
from penstock.cli.convert.language.as_sql import ddl_of, to_sql
from penstock.cli.convert.language.bloblang import parse_mapping, parse_query
from penstock.cli.convert.language.expressions import Expression, Field, Items, Members, parts
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import STORE_LOGIN, boolean, database_url, snake

FAN_OUT = ("fan_out", "fan_out_fail_fast", "fan_out_sequential", "fan_out_sequential_fail_fast")
INTERPOLATION = re.compile(r"\$\{!\s*(.*?)\s*\}")


def output(build: Build, node: Node) -> list[str]:
    """Add the sinks of an output; returns their ids."""
    node = build.resolved(node, "output_resources")
    kind, config = build.component(node)
    if (steps := node.get("processors")) is not None:
        processors(build, steps)
    if kind == "broker" and (outputs := config.get("outputs")) is not None:
        pattern = config.get("pattern")
        if pattern is not None and pattern.text() not in FAN_OUT:
            build.draft.change(
                pattern,
                f"'{pattern.value}' has no equivalent: each event goes to all sinks",
                code="changed",
            )
        build.batching(config.get("batching"))
        ids = [found for each in outputs.items for found in output(build, each)]
        build.spec["commit_policy"] = {"mode": "all"}
        return ids
    if kind == "switch" and config.is_map and config.get("cases") is not None:
        return _switch(build, config)
    if kind == "fallback" and config.is_list and config.items:
        for rest in config.items[1:]:
            build.draft.change(
                rest, "fallback sinks have no equivalent: this sink was left out",
                "events that the first sink rejects go to the dead letters",
            )  # fmt: skip
        return output(build, config.items[0])
    if kind in ("retry", "drop_on") and (inner := config.get("output")) is not None:
        build.draft.note(inner, "every sink is retried automatically; see `retries` and `deadline_ms`")
        for leaf in inner.leaves():
            leaf.used = False
        return output(build, inner)
    return [_sink(build, node, kind, config)]


def _switch(build: Build, config: Node) -> list[str]:
    cases: list[tuple[Expression | None, list[str]]] = []
    for case in config.children["cases"].items:
        check, chosen = case.get("check"), case.get("output")
        ids = output(build, chosen) if chosen is not None else []
        try:
            condition = parse_query(check.text()) if check is not None and check.value else None
        except Unmapped as reason:
            assert check is not None
            build.refuse(check, reason)
            continue
        if (more := case.get("continue")) is not None and boolean(more):
            build.draft.change(more, "an event goes to the sink of the first case only", code="changed")
        cases.append((condition, ids))
    for name in ("retry_until_success", "strict_mode"):
        if (found := config.get(name)) is not None:
            build.draft.note(found, "an event that matches no case is dropped")
    _route(build, config, cases)
    return [name for _, ids in cases for name in ids]


def _route(build: Build, config: Node, cases: list[tuple[Expression | None, list[str]]]) -> None:
    if build.steps.columns is not None:
        try:
            rules = [{"when": to_sql(check) if check else "true", "sinks": ids} for check, ids in cases]
            build.steps.add(type="route", rules=rules, default="drop")
            return
        except Unmapped:
            build.steps.to_text()
    try:
        build.steps.add(type="javascript", inline=routing_script(cases))
    except Unmapped as reason:
        build.refuse(config, reason)


def _sink(build: Build, node: Node, kind: str, config: Node) -> str:
    label = node.get("label")
    name = snake(label.text()) if label is not None and label.value else snake(kind)
    taken = {each.get("id") or each["type"] for each in build.sinks}
    base, n = name, 2
    while name in taken:
        name, n = f"{base}_{n}", n + 1
    end = OUTPUTS.get(kind)
    sink: dict[str, Any] = {"id": name}
    build.sinks.append(sink)
    build.draft.place(node, sink)
    if kind == "file":
        _file_sink(build, config, sink)
    elif kind == "aws_s3":
        _s3_sink(build, config, sink)
    elif end is None:
        sink["type"] = "drop"
        build.draft.change(
            config, f"there is no sink for the output '{kind}': events are dropped", "replace the sink",
            code="unknown_type",
        )  # fmt: skip
    else:
        sink |= {"type": end.type, **end.fixed}
        if end.type == "stdout" and build.spec["source"]["type"] == "http":
            sink.pop("format")
            sink["type"] = "console"
            build.draft.change(config, "events are printed in the log of the worker", code="changed")
        if build.steps.columns is not None and sink.get("format") == "text":
            sink["format"] = "json"
        build.fill(sink, config, end)
        if end.type == "kafka":
            _kafka_sink(build, config, sink)
        if end.shape == "rows":
            _rows(build, config, sink)
        for field in ("subject", "key", "url", "routing_key"):
            if isinstance(sink.get(field), str) and INTERPOLATION.search(sink[field]):
                _templated(build, config, sink, field, sink[field])
    if config.is_map:
        build.batching(config.get("batching"))
    return name


def _kafka_sink(build: Build, config: Node, sink: dict[str, Any]) -> None:
    if (topic := config.get("topic")) is not None:
        _templated(build, topic, sink, "topic", topic.text())
    if (key := config.get("key")) is not None and key.value:
        try:
            found = INTERPOLATION.fullmatch(key.text().strip())
            if found is None:
                raise Unmapped("only a key that is one interpolation has an equivalent")
            build.steps.key(parse_query(found[1]))
        except Unmapped as reason:
            build.refuse(key, reason)
    if (headers := config.get("static_headers")) is not None:
        build.draft.change(headers, "fixed headers were left out", "set `_headers` in a map step")


def _templated(build: Build, node: Node, sink: dict[str, Any], field: str, text: str) -> None:
    """Convert a text with interpolations into a template with columns."""
    made, at = "", 0
    try:
        for number_, found in enumerate(INTERPOLATION.finditer(text), 1):
            column = build.steps.column(f"{field}_{number_}", parse_query(found[1]))
            made += text[at : found.start()] + f"{{{column}}}"
            at = found.end()
        sink[field] = made + text[at:]
    except Unmapped as reason:
        sink[field] = INTERPOLATION.sub("x", text)
        build.refuse(node, reason)


def _file_sink(build: Build, config: Node, sink: dict[str, Any]) -> None:
    sink |= {"type": "file", "path": "out", "format": "text" if build.steps.columns is None else "json"}
    if (path := config.get("path")) is None:
        return
    sink["path"] = INTERPOLATION.sub("", path.text())
    what = f"'{sink['path']}' becomes a directory of files, a few for each batch"
    hint = "read it as a whole, or use a stdout sink and a shell"
    if INTERPOLATION.search(path.text()):
        hint = "use partition_by for a directory for each value of a column"
    build.draft.change(path, what, hint, code="changed")
    if (codec := config.get("codec")) is not None and codec.text() not in ("lines", "all-bytes"):
        build.draft.change(codec, "each event is a line", code="changed")


def _s3_sink(build: Build, config: Node, sink: dict[str, Any]) -> None:
    bucket = config.get("bucket")
    name = bucket.text() if bucket is not None else "bucket"
    sink |= {"type": "file", "path": f"s3a://{name}/{build.name}"}
    sink["format"] = "text" if build.steps.columns is None else "json"
    if (path := config.get("path")) is not None:
        build.draft.change(path, f"files of batches are below {sink['path']}", code="changed")
    build.draft.about(sink, *STORE_LOGIN)


def _rows(build: Build, config: Node, sink: dict[str, Any]) -> None:
    """Columns for a sink of rows, from `columns` and `args_mapping`."""
    driver, dsn = config.get("driver"), config.get("dsn")
    if driver is not None and driver.text() not in ("postgres", "mysql", "sqlite"):
        build.draft.change(driver, f"there is no sink for databases of '{driver.value}'", "replace the sink")
    if driver is not None and dsn is not None:
        sink["url"] = database_url(driver.text(), str(sink.get("url", "")))
    names = sink.pop("columns", [])
    mapping = config.get("args_mapping")
    if mapping is None or not names:
        return
    try:
        (only,) = parse_mapping(mapping.text())
        if not isinstance(only.value, Items) or len(only.value.items) != len(names):
            raise Unmapped("args_mapping is not a list of as many values as columns")
        if build.steps.columns is None:
            paths = sorted({".".join(part.path) for item in only.value.items for part in _fields(item)})
            fields = list(dict.fromkeys(path.split(".")[0] for path in paths))
            schema = ddl_of(dict.fromkeys(paths, "STRING"))
            build.steps.add(type="decode", format="json", schema=schema, keep=False)
            build.steps.columns = fields
            build.draft.change(
                mapping, f"the types of {', '.join(paths)} are not known: they are read as STRING",
                "convert with --schema, or set the types in the decode step", code="changed",
            )  # fmt: skip
        made = dict(zip(names, only.value.items, strict=True))
        build.steps.mapping([Assignment("root", (), Members(tuple(made.items())))], keeps=False)
    except (Unmapped, ValueError) as reason:
        build.refuse(
            mapping, reason if isinstance(reason, Unmapped) else Unmapped("args_mapping was left out")
        )


def _fields(expression: Expression) -> list[Field]:
    return [part for part in parts(expression) if isinstance(part, Field) and part.path]
