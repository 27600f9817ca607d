"""Writes docs/reference/ from the code: `python -m penstock.cli.reference [DIRECTORY]`.

Every page is generated from the definitions that the program itself uses, so that none can be out of date; a
test compares the committed pages with the generated ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from penstock.cli.kinds import PLURALS
from penstock.cli.schema_text import rows

DIRECTORY = Path("docs/reference")
NOTE = "<!-- Generated from the code by `make docs`. Do not edit. -->"


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    made = {f"{kind.lower()}.md": _kind(kind) for kind in PLURALS}
    made |= {"connectors.md": _connectors(), "processors.md": _processors()}
    made |= {"settings.md": _settings(), "cli.md": _cli()}
    return {"README.md": _index(made), **made}


def write(directory: Path) -> None:
    """Write every page."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")


def _index(made: dict[str, str]) -> str:
    titles = {name: text.splitlines()[0].removeprefix("# ") for name, text in made.items()}
    return _page("Reference", *(f"- [{title}]({name})" for name, title in titles.items()))


def _kind(kind: str) -> str:
    from penstock.specs.documents import Models

    model = Models.by_kind[kind]
    spec = model.model_fields["spec"].annotation
    about = cleandoc(getattr(spec, "__doc__", None) or "") if isinstance(spec, type) else ""
    return _page(kind, about or cleandoc(model.__doc__ or ""), "", *_fields(model.model_json_schema()))


def _connectors() -> str:
    parts = [
        "Sources and sinks are configured inline in a Pipeline, or in a separate Source or Sink document.",
        "",
    ]
    parts += _overview()
    for role, title in (("source", "Sources"), ("sink", "Sinks")):
        parts += [f"## {title}", "", *_components(role, "###")]
    return _page("Connectors", *parts)


def _overview() -> list[str]:
    """A table of connectors: role, delivery guarantee, connection test and systems tested on."""
    from penstock.connectors.base import Sink, Source
    from penstock.specs.catalog import catalog

    body = []
    for role, base in (("source", Source), ("sink", Sink)):
        for name, component in catalog(role).classes.items():
            kind: Any = component
            probes = "yes" if kind.probe is not base.probe else ""
            promise = kind.guarantee or ""
            body.append([f"`{name}`", role, promise, probes, kind.tested or ""])
    titles = ["connector", "role", "guarantee", "connection test", "conformance suite passed on"]
    return _table(titles, body)


def _processors() -> str:
    return _page("Processors", "The steps of a Pipeline or a Task.", "", *_components("processor", "##"))


def _components(role: Any, heading: str) -> list[str]:
    from penstock.specs.catalog import catalog

    parts: list[str] = []
    for name, component in catalog(role).classes.items():
        parts += [f"{heading} {name}", "", cleandoc(component.__doc__ or ""), ""]
        if guarantee := getattr(component, "guarantee", None):
            parts += [f"Guarantee: **{guarantee}**.", ""]
        parts += _fields(component.model_json_schema(by_alias=True))
        if component.example:
            parts += ["```yaml", component.example.rstrip(), "```", ""]
    return parts


def _settings() -> str:
    from penstock.settings import catalogue

    about = (
        "Defaults are overridden by `penstock.toml` (in the working directory or the home directory), then "
        "by environment variables, then by command-line options. `penstock config` shows each value and its "
        "origin."
    )
    table = _table(
        ["setting", "variable", "default", "meaning"],
        (
            [f"`{s.path}`", f"`{s.variable}`", _code(s.default), _choices(s.choices) + s.description]
            for s in catalogue()
        ),
    )
    return _page("Settings", about, "", *table)


def _cli() -> str:
    from penstock.cli.main import HELP, commands

    parts = [
        HELP,
        "",
        "`penstock --install-completion` installs shell completion, including document names.",
        "",
    ]
    for _, name, command in commands():
        given = [_Parameter(*each) for each in _parameters(command)]
        usage = " ".join(["penstock", name, *(p.text for p in given if p.argument)])
        options = " [OPTIONS]" if any(not p.argument for p in given) else ""
        parts += [
            f"## penstock {name}",
            "",
            "```",
            usage + options,
            "```",
            "",
            cleandoc(command.__doc__ or ""),
            "",
        ]
        parts += _table(["argument or option", "meaning"], ([f"`{p.text}`", p.meaning] for p in given))
    return _page("Command line", *parts)


def _parameters(command: Callable[..., None]) -> Iterator[tuple[str, Any, Any, Any]]:
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        kind, declared = get_args(hints[name])
        yield name, kind, declared, parameter.default


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: Any
    declared: Any
    default: Any

    @property
    def argument(self) -> bool:
        return type(self.declared).__name__ == "ArgumentInfo"

    @property
    def text(self) -> str:
        word = self.name.rstrip("_").upper()
        many = "..." if get_origin(self.kind) is list else ""
        if self.argument:
            return f"{word}{many}" if self.default is Parameter.empty else f"[{word}{many}]"
        # Inside Annotated, Typer takes the first name for a default.
        given = [name for name in (self.declared.default, *(self.declared.param_decls or ())) if name]
        names = ", ".join(map(str, given)) if isinstance(self.declared.default, str) else f"--{self.name}"
        if self.kind is bool:
            return names
        return f"{names} {'|'.join(get_args(self.kind)) if get_origin(self.kind) is Literal else word}"

    @property
    def meaning(self) -> str:
        default = f" Default: `{self.default}`." if isinstance(self.default, str) else ""
        variable = f" Variable: `{self.declared.envvar}`." if self.declared.envvar else ""
        return f"{self.declared.help}{default}{variable}"


def _fields(schema: dict[str, Any]) -> list[str]:
    return _table(
        ["field", "type", "default", "meaning"],
        ([f"`{row.name}`", row.type, row.default, row.description] for row in rows(schema)),
    )


def _choices(choices: Sequence[str]) -> str:
    return f"{' or '.join(f'`{choice}`' for choice in choices)}. " if choices else ""


def _code(value: object) -> str:
    return "" if value is None or value == {} else f"`{value}`"


def _table(titles: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in body
    ]
    if not lines:
        return []
    return ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles), *lines, ""]


def _page(title: str, *parts: str) -> str:
    return "\n".join([f"# {title}", "", NOTE, "", *parts]).rstrip() + "\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY)
