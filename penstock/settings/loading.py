"""Settings from four layers, with the origin of each value.

Later layers take precedence: built-ins, `penstock.toml`, `PENSTOCK_*` variables, the command line.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.errors import Invalid, Problem, did_you_mean, nearest
from penstock.settings.catalogue import PREFIX, Keys, catalogue, section, variable_of
from penstock.settings.model import Settings

FILE_NAME = "penstock.toml"
CONFIG_VARIABLE = "PENSTOCK_CONFIG"
# Variables of the same prefix that belong to the test suite and to the command line client.
NOT_SETTINGS = frozenset(
    {
        CONFIG_VARIABLE,
        "PENSTOCK_TEST_STRICT",
        "PENSTOCK_TEST_NIGHTLY",
        "PENSTOCK_SERVER",
        "PENSTOCK_TOKEN",
        "PENSTOCK_WORKER_TOKEN",
        "PENSTOCK_DEBUG",
        "PENSTOCK_FORK_SERVER",
    }
)

FOR_DOCUMENTS = f"{PREFIX}VAR_"
"""The prefix of variables for use in documents."""

Layer = Literal["built-in", "file", "environment", "command line"]


@dataclass(frozen=True)
class Origin:
    """The effective value of a setting, and the layer that set it."""

    value: object
    layer: Layer
    name: str | None = None

    def __str__(self) -> str:
        if self.layer == "file":
            return f"{FILE_NAME} ({self.name})"
        return self.name or self.layer


@dataclass(frozen=True)
class Loaded:
    """Settings with their origins and warnings."""

    settings: Settings
    origins: dict[str, Origin]
    warnings: list[Problem] = field(default_factory=list)
    file: Path | None = None


def load(
    overrides: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Loaded:
    """Settings from all layers.

    `overrides` are from the command line, by dotted name; None means not given.
    Raises `Invalid` with every bad value and unknown name at once.
    """
    cwd = (cwd or Path.cwd()).absolute()
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    # An empty variable counts as not set.
    variables = {n: v for n, v in (os.environ if env is None else env).items() if n.startswith(PREFIX) and v}

    layers = _Layers()
    layers.add(Settings().model_dump(), "built-in")
    file = _find_file(given, variables, cwd)
    if file:
        layers.add_file(file)
    layers.add_variables(variables)
    for name, value in given.items():
        layers.add(_nest(name, value), "command line")
    layers.resolve_home(cwd)
    settings = layers.validate()
    return Loaded(settings, layers.effective(settings), layers.warnings, file)


def _find_file(given: Mapping[str, object], variables: Mapping[str, str], cwd: Path) -> Path | None:
    if named := variables.get(CONFIG_VARIABLE):
        return cwd / Path(named).expanduser()
    home = given.get("home") or variables.get(variable_of(("home",))) or Settings().home
    candidates = (cwd / FILE_NAME, cwd / Path(str(home)).expanduser() / FILE_NAME)
    return next((path for path in candidates if path.is_file()), None)


def _nest(name: str, value: object) -> dict[str, object]:
    """A table with `value` at a dotted name."""
    first, _, rest = name.partition(".")
    return {first: _nest(rest, value) if rest else value}


def _leaves(value: object, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    if isinstance(value, Mapping) and (value or not keys):
        for name, below in value.items():
            yield from _leaves(below, (*keys, str(name)))
    else:
        yield keys, value


def _spark_text(value: object) -> object:
    """A property in Spark's spelling; invalid values are left for the model to reject."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, list | dict) else str(value)


class _Layers:
    """The leaves of all layers so far with their origins; later additions take precedence."""

    def __init__(self) -> None:
        self.origins: dict[Keys, Origin] = {}
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def add(self, table: Mapping[str, object], layer: Layer, name: str | None = None) -> None:
        for keys, value in _leaves(table):
            dotted = ".".join(keys)
            if dotted.startswith("spark."):
                # Inside [spark] both "sql.x" and the full "spark.sql.x" name the property spark.sql.x.
                keys = ("spark", "spark." + dotted.removeprefix("spark.").removeprefix("spark."))
                value = _spark_text(value)
            self._put(keys, Origin(value, layer, name))

    def _put(self, keys: Keys, origin: Origin) -> None:
        inside = [known for known in self.origins if known[: len(keys)] == keys]
        if inside and origin.value == {}:  # an empty table changes nothing
            return
        around = [keys[:length] for length in range(1, len(keys))]
        for replaced in (*inside, *around):
            self.origins.pop(replaced, None)
        self.origins[keys] = origin

    def add_file(self, file: Path) -> None:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            message = f"cannot read {file}: {error.strerror}"
            self.problems.append(Problem(code="unreadable_file", message=message))
        except ValueError as error:
            message = f"{file} is not valid TOML: {error}"
            self.problems.append(Problem(code="invalid_file", message=message))
        else:
            self.add(table, "file", str(file))

    def add_variables(self, variables: Mapping[str, str]) -> None:
        known = {setting.variable: setting for setting in catalogue()}
        properties = {variable_of(keys[1:]): keys[-1] for keys in self.origins if keys[0] == "spark"}
        for variable, text in variables.items():
            value: object = text
            if variable.startswith(f"{PREFIX}SPARK_"):
                path = properties.get(variable) or variable.removeprefix(PREFIX).lower().replace("_", ".")
            elif variable in known:
                path = known[variable].path
                if isinstance(known[variable].default, dict):
                    value = self._table(path, variable, text)
            else:
                if variable not in NOT_SETTINGS and not variable.startswith(FOR_DOCUMENTS):
                    self.warnings.append(_unknown_variable(variable, known))
                continue
            self.add(_nest(path, value), "environment", variable)

    def _table(self, path: str, variable: str, text: str) -> object:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        message, hint = "must be a JSON object", f"set by {variable}"
        self.problems.append(Problem(code="invalid_value", message=message, path=path, hint=hint))
        return {}

    def resolve_home(self, cwd: Path) -> None:
        """Make `home` absolute: it is passed to other processes."""
        origin = self.origins.get(("home",))
        if origin and isinstance(origin.value, str | Path):
            base = Path(origin.name).parent if origin.layer == "file" and origin.name else cwd
            home = base / Path(origin.value).expanduser()
            self.origins["home",] = replace(origin, value=home)

    def validate(self) -> Settings:
        table: dict[str, Any] = {}
        for keys, origin in self.origins.items():
            below = table
            for key in keys[:-1]:
                below = below.setdefault(key, {})
            below[keys[-1]] = origin.value
        try:
            settings = Settings.model_validate(table)
        except ValidationError as error:
            self.problems += [self._explain(details) for details in error.errors(include_url=False)]
        if self.problems:
            raise Invalid(*self.problems)
        return settings

    def _explain(self, details: ErrorDetails) -> Problem:
        keys = tuple(str(part) for part in details["loc"])
        path = keys[-1] if keys[0] == "spark" else ".".join(keys)
        origin = next(origin for known, origin in self.origins.items() if known[: len(keys)] == keys)
        if details["type"] == "extra_forbidden":
            hint = f"set by {origin}; {did_you_mean(keys[-1], _siblings(keys))}"
            return Problem(code="unknown_setting", message="unknown setting", path=path, hint=hint)
        got = details["input"]
        shown = f", not {got!r}" if isinstance(got, str | int | float) else ""
        said = details["msg"].removeprefix("Value error, ")
        message = said.replace("Input should be", "must be", 1) + shown
        return Problem(code="invalid_value", message=message, path=path, hint=f"set by {origin}")

    def effective(self, settings: Settings) -> dict[str, Origin]:
        """Origins by dotted name, with values as parsed by the model."""
        found: dict[str, Origin] = {}
        table = settings.model_dump()
        for keys, origin in sorted(self.origins.items()):
            value: Any = table
            for key in keys:
                value = value[key]
            found[keys[-1] if keys[0] == "spark" else ".".join(keys)] = replace(origin, value=value)
        return found


def _siblings(keys: Keys) -> list[str]:
    model: type[BaseModel] = Settings
    for key in keys[:-1]:
        model = section(model.model_fields[key].annotation) or model
    return list(model.model_fields)


def _unknown_variable(variable: str, known: Iterable[str]) -> Problem:
    close = nearest(variable, [name.lower() for name in known])
    hint = f"did you mean '{close.upper()}'?" if close else None
    return Problem(code="unknown_variable", message="no setting has this name", path=variable, hint=hint)
