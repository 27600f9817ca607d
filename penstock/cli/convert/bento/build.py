"""A pipeline under construction from a Bento configuration: its parts so far, and shared helpers."""

from __future__ import annotations

import re
from typing import Any

from penstock.cli.convert.bento.ends import MECHANISM, End
from penstock.cli.convert.draft import Draft, Table, To, Unmapped
from penstock.cli.convert.language.steps import Steps
from penstock.cli.convert.located import Node
from penstock.cli.convert.remote import spread_url
from penstock.cli.convert.values import boolean, milliseconds, number

BESIDE = ("label", "processors", "description")
"""Fields next to the field that names the type of a component."""

ENVIRONMENT = re.compile(r"\$\{([A-Za-z_]\w*):([^}]*)\}")

BATCHING: dict[str, To] = {
    "count": To("max_events", number),
    "byte_size": To("max_bytes", number),
    "period": To("max_ms", milliseconds),
}

LOGIN: Table = {
    "mechanism": MECHANISM,
    "username": "security.sasl.username",
    "password": "security.sasl.password",
}


class Build:
    """A pipeline under construction."""

    def __init__(self, draft: Draft, name: str) -> None:
        self.draft, self.root, self.name = draft, draft.root, name
        self.spec: dict[str, Any] = {}
        self.sinks: list[dict[str, Any]] = []
        self.steps = Steps()

    def component(self, node: Node) -> tuple[str, Node]:
        """The type of a component and its configuration."""
        names = [name for name in node.children if name not in BESIDE]
        if "type" in node.children and len(names) > 1:
            kind = node.children["type"].text()
            return kind, node.children.get(kind, node)
        if not names:
            return "none", node
        return names[0], node.children[names[0]]

    def resolved(self, node: Node, resources: str) -> Node:
        """The component that a node refers to by resource name, else the node itself."""
        wanted, listed = node.get("resource"), self.root.get(resources)
        if wanted is None or listed is None:
            return node
        for each in listed.items:
            if each.peek("label") == wanted.value:
                wanted.use()
                return each
        return node

    def refuse(self, node: Node, reason: Unmapped) -> None:
        """Report a part of the input that has no equivalent."""
        self.draft.change(node, reason.message, reason.hint)

    def fill(self, made: dict[str, Any], config: Node, end: End) -> None:
        """Fill a source or sink from the fields of a component."""
        if not config.is_map:
            self.draft.place(config, made)
            config.use()
            return
        self.draft.fill(made, config, end.table)
        with_fallbacks(made)
        if end.type == "kafka":
            self._security(config, made)
        spread_url(self.draft, made, config.get("urls") or config.get("url") or config)

    def _security(self, config: Node, made: dict[str, Any]) -> None:
        tls, sasl = config.get("tls"), config.get("sasl")
        if tls is not None:
            enabled = tls.get("enabled")
            if enabled is not None and boolean(enabled):
                made.setdefault("security", {}).setdefault("tls", {})
            elif enabled is not None:
                made.get("security", {}).pop("tls", None)
            if (skip := tls.get("skip_cert_verify")) is not None and boolean(skip):
                hint = "name the authority in tls.ca_file"
                self.draft.change(skip, "certificates are verified", hint, code="changed")
        if sasl is not None and sasl.is_list and sasl.items:
            self.draft.fill(made, sasl.items[0], LOGIN)
        elif sasl is not None and sasl.is_map and (found := sasl.get("mechanism")) is not None:
            if found.value == "none":
                found.use()
                made.get("security", {}).pop("sasl", None)
            else:
                self.draft.fill(made, sasl, {"mechanism": MECHANISM})
        if "security" in made and not made["security"]:
            del made["security"]

    def batching(self, batching: Node | None) -> None:
        """Convert the batching rules of a component. A pipeline has one set of rules."""
        if batching is None or not batching.is_map:
            return
        made: dict[str, Any] = {}
        self.draft.place(batching, self.spec)
        for name, entry in BATCHING.items():
            found = batching.get(name)
            if found is None:
                continue
            try:
                if (value := entry.convert(found) if found.value and entry.convert else 0) > 0:
                    made[entry.path] = value
                found.use()
            except Unmapped as reason:
                self.refuse(found, reason)
        if "batch" in self.spec and made and made != self.spec["batch"]:
            self.draft.change(batching, "the batches of another component are used for all", code="changed")
        elif made:
            self.spec["batch"] = made


def with_fallbacks(made: Any) -> None:
    """Write `${NAME:text}` as `${NAME:-text}`, in place."""
    items = made.items() if isinstance(made, dict) else enumerate(made)
    for key, value in list(items):
        if isinstance(value, str):
            made[key] = ENVIRONMENT.sub(r"${\1:-\2}", value)
        elif isinstance(value, dict | list):
            with_fallbacks(value)
