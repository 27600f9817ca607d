"""Facts about this installation: settings with secrets masked, and versions of its software."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as installed
from typing import Any

from penstock.settings import Loaded, Setting, catalogue

MASK = "***"
SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|secret(?!s\.)|secrets\.key$|token(?!_file)|api.?key|access.?key|private.?key|credential"
    r"|authorization|^cookie",
    re.IGNORECASE,
)
SECRET_IN_URL = re.compile(
    r"(://[^:/@\s]*:)[^@/\s]+(@)|([?&](?:password|token|secret)=)[^&\s]+", re.IGNORECASE
)


@dataclass(frozen=True)
class ShownSetting:
    """A setting with its current value, secrets masked, and its description."""

    name: str
    value: Any
    default: Any
    origin: str
    variable: str
    description: str
    choices: tuple[str, ...]


def shown_settings(loaded: Loaded) -> list[ShownSetting]:
    """Every setting, in the order of the reference; tables such as `spark` are listed by entry."""
    return [
        ShownSetting(
            name,
            masked(name, origin.value),
            masked(name, _default(setting, name)),
            str(origin),
            _variable(setting, name),
            setting.description,
            setting.choices,
        )
        for setting in catalogue()
        for name, origin in loaded.origins.items()
        if name == setting.path or name.startswith(f"{setting.path}.")
    ]


def masked(name: str, value: Any) -> Any:
    """A value with secrets masked: the whole value if its name denotes a secret, else passwords in URLs."""
    if isinstance(value, dict):
        return {key: masked(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(name, inner) for inner in value]
    if not isinstance(value, str):
        return value
    if SECRET_NAME.search(name):
        return MASK
    return SECRET_IN_URL.sub(lambda m: f"{m[1]}{MASK}{m[2]}" if m[1] else f"{m[3]}{MASK}", value)


def versions() -> dict[str, str | None]:
    """The versions that matter for troubleshooting."""
    return {
        "penstock": installed("penstock"),
        "python": platform.python_version(),
        "spark": installed("pyspark"),
        "java": _java(),
    }


def _default(setting: Setting, name: str) -> Any:
    """The built-in value of a setting, or of one of its entries."""
    if name == setting.path or not isinstance(setting.default, Mapping):
        return setting.default
    return setting.default.get(name)


def _variable(setting: Setting, name: str) -> str:
    """The environment variable of a setting. Spark properties have one each, other tables one in total."""
    if not setting.variable.endswith("_*") or name == setting.path:
        return setting.variable
    return setting.variable.removesuffix("*") + name.partition(".")[2].upper().replace(".", "_")


@cache
def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=10).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', told)
    return match[1] if match else None
