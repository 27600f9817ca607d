"""Single message transforms as steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.cli.convert.draft import Draft, Unmapped
from penstock.cli.convert.language.as_script import Assignment
from penstock.cli.convert.language.expressions import (
    Call,
    Deleted,
    Expression,
    Field,
    Literal,
    Members,
    Method,
    rebuilt,
)
from penstock.cli.convert.language.pdl import parse_condition
from penstock.cli.convert.language.steps import Steps
from penstock.cli.convert.located import Node
from penstock.cli.convert.values import comma_list

CASTS = {
    "string": "string", "float64": "number", "float32": "number", "int64": "int64", "int32": "int32",
    "int16": "int32", "int8": "int32", "boolean": "bool",
}  # fmt: skip


@dataclass
class Chain:
    """The transforms of a connector: the resulting steps, and their effects on the topic and the key."""

    draft: Draft
    steps: Steps
    topics: list[str] = field(default_factory=list)
    unwraps: bool = False
    """Whether Debezium events are reduced to the row after the change."""
    key_fields: list[str] = field(default_factory=list)
    replacements: list[tuple[str, str]] = field(default_factory=list)

    def routed(self, topic: str) -> str:
        """The name of a topic after all routers."""
        for pattern, replacement in self.replacements:
            try:
                if re.fullmatch(pattern, topic):
                    topic = re.sub(pattern, replacement, topic, count=1)
            except re.error:
                continue
        return topic


def apply(chain: Chain, config: Node) -> None:
    """Add the steps of all transforms in their order."""
    names = config.get("transforms")
    for name in comma_list(names) if names is not None else []:
        prefix = f"transforms.{name}."
        settings = {
            key[len(prefix) :]: node for key, node in config.children.items() if key.startswith(prefix)
        }
        kind = settings.pop("type", None)
        if kind is None:
            assert names is not None
            chain.draft.change(names, f"the transform '{name}' has no type and was left out")
            continue
        predicate = settings.get("predicate")
        short = re.sub(r"^.*\.", "", kind.text())
        handler = HANDLERS.get(short.split("$")[0])
        before = len(chain.steps.made)
        try:
            if handler is None:
                raise Unmapped(
                    f"the transform '{short}' was left out", "write it as a sql or javascript step"
                )
            if predicate is not None and short != "Filter":
                raise Unmapped(f"'{short}' under a condition was left out", "write it as a sql step")
            handler(chain, short, settings, config)
        except Unmapped as reason:
            chain.draft.change(kind, reason.message, reason.hint)
            for node in settings.values():
                chain.draft.note(node, "it belongs to a transform that was left out", code="left_out")
        if len(chain.steps.made) > before:
            for node in (kind, *settings.values()):
                chain.draft.place(node, chain.steps.made[-1])


Settings = dict[str, Node]


def _replace_field(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    _only_values(short)
    assignments = []
    for name in ("exclude", "blacklist"):
        if (found := settings.get(name)) is not None:
            assignments += [Assignment("root", (each,), Deleted()) for each in comma_list(found)]
    renames = (
        dict(each.split(":", 1) for each in comma_list(settings["renames"])) if "renames" in settings else {}
    )
    for name in ("include", "whitelist"):
        if (found := settings.get(name)) is not None and (wanted := comma_list(found)):
            members = tuple((renames.get(each, each), Field((each,))) for each in wanted)
            chain.steps.mapping([Assignment("root", (), Members(members))], keeps=False)
            return
    for old, new in renames.items():
        assignments += [Assignment("root", (new,), Field((old,))), Assignment("root", (old,), Deleted())]
    chain.steps.mapping(assignments, keeps=True)


def _insert_field(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    _only_values(short)
    assignments = []
    if (name := settings.get("static.field")) is not None:
        value = settings.get("static.value")
        text = value.text() if value is not None else ""
        assignments.append(Assignment("root", (_plain(name),), Literal(text)))
    if (name := settings.get("timestamp.field")) is not None:
        assignments.append(Assignment("root", (_plain(name),), Call("event_time")))
    if (name := settings.get("offset.field")) is not None:
        assignments.append(Assignment("root", (_plain(name),), Call("event_offset")))
    if (name := settings.get("topic.field")) is not None:
        if len(chain.topics) != 1:
            raise Unmapped("the name of the topic is not inserted", "set `metadata: true` on the source")
        assignments.append(Assignment("root", (_plain(name),), Literal(chain.topics[0])))
    if "partition.field" in settings:
        raise Unmapped("the partition is not inserted", "set `metadata: true` on the source")
    chain.steps.mapping(assignments, keeps=True)


def _mask_field(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    _only_values(short)
    replacement = settings.get("replacement")
    value = Literal(replacement.text()) if replacement is not None else Literal(None)
    fields = comma_list(settings["fields"]) if "fields" in settings else []
    chain.steps.mapping([Assignment("root", (each,), value) for each in fields], keeps=True)
    if replacement is None and "fields" in settings:
        chain.draft.change(settings["fields"], "masked fields are null, not empty", code="changed")


def _cast(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    _only_values(short)
    assignments = []
    for each in comma_list(settings["spec"]) if "spec" in settings else []:
        name, _, kind = each.partition(":")
        if kind not in CASTS:
            raise Unmapped(f"a cast to '{kind or each}' was left out", "use a sql step")
        assignments.append(Assignment("root", (name,), Method(Field((name,)), CASTS[kind])))
    chain.steps.mapping(assignments, keeps=True)


def _value_to_key(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    chain.key_fields = comma_list(settings["fields"]) if "fields" in settings else []
    if not _extracts_key(config):
        members = Members(tuple((name, Field((name,))) for name in chain.key_fields))
        chain.steps.key(Method(members, "format_json"))


def _extracts_key(config: Node) -> bool:
    return any(
        str(node.value).endswith("ExtractField$Key")
        for key, node in config.children.items()
        if re.fullmatch(r"transforms\.[^.]+\.type", key)
    )


def _extract_field(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    name = _plain(settings["field"]) if "field" in settings else ""
    if short.endswith("$Value"):
        chain.steps.mapping([Assignment("root", (), Field((name,)))], keeps=False)
    elif name in chain.key_fields:
        chain.steps.key(Field((name,)))
    else:
        raise Unmapped("a part of the key was not taken out", "set `_key` in a map step")


def _router(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    if "regex" not in settings or "replacement" not in settings:
        raise Unmapped("a router without 'regex' and 'replacement' was left out")
    pattern, replacement = _plain(settings["regex"]), _plain(settings["replacement"])
    try:
        re.compile(pattern)
    except re.error:
        raise Unmapped("the regular expression of the router is not understood", "set the topic") from None
    chain.replacements.append((pattern, re.sub(r"\$(\d)", r"\\\1", replacement)))


def _filter(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    predicate, condition = settings.get("predicate"), settings.get("condition")
    if condition is not None:  # Debezium's own filter, in Groovy
        found = rebuilt(parse_condition(condition.text()), _of_value)
        if "language" in settings:
            chain.draft.note(
                settings["language"], "the condition is written in JavaScript or SQL", code="left_out"
            )
        chain.steps.keep(found)
        return
    if predicate is None:
        raise Unmapped(f"the transform '{short}' was left out", "use a filter step")
    prefix = f"predicates.{predicate.text()}."
    kind = config.get(f"{prefix}type")
    if "negate" in settings or kind is None or not kind.text().endswith("RecordIsTombstone"):
        raise Unmapped("events are not filtered", "use a filter step")
    chain.steps.made.append({"type": "filter", "where": "value IS NOT NULL"})
    if (names := config.get("predicates")) is not None:
        chain.draft.note(names, "the condition is in the filter step", code="left_out")


def _of_value(part: Expression) -> Expression:
    if isinstance(part, Field) and part.path[:1] == ("value",):
        return Field(part.path[1:])
    return part


def _unwrap(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    chain.unwraps = True
    for name, node in settings.items():
        if name in ("drop.tombstones", "delete.handling.mode", "delete.tombstone.handling.mode"):
            chain.draft.note(node, "a delete becomes an event with a key and no value")
        elif name in ("add.fields", "add.headers"):
            chain.draft.change(node, "metadata is not added to rows", "use envelope: native and a sql step")


def _ignored(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    for node in settings.values():
        chain.draft.note(node, "events have no schema of Connect")


def _hoist(chain: Chain, short: str, settings: Settings, config: Node) -> None:
    _only_values(short)
    name = _plain(settings["field"]) if "field" in settings else "value"
    chain.steps.mapping([Assignment("root", (), Members(((name, Field()),)))], keeps=False)


HANDLERS: dict[str, Callable[[Chain, str, Settings, Node], None]] = {
    "ReplaceField": _replace_field,
    "InsertField": _insert_field,
    "MaskField": _mask_field,
    "Cast": _cast,
    "ValueToKey": _value_to_key,
    "ExtractField": _extract_field,
    "RegexRouter": _router,
    "Filter": _filter,
    "ExtractNewRecordState": _unwrap,
    "SetSchemaMetadata": _ignored,
    "HoistField": _hoist,
}


def _only_values(short: str) -> None:
    if short.endswith("$Key"):
        raise Unmapped(f"'{short}' was left out: keys are text", "set `_key` in a map step")
    if not short.endswith("$Value"):
        raise Unmapped(f"the transform '{short}' was left out", "write it as a sql or javascript step")


def _plain(node: Node) -> str:
    return node.text()
