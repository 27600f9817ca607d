"""`penstock config` and `penstock version`: what this installation is."""

from __future__ import annotations

import platform
import re
import subprocess
from typing import TYPE_CHECKING, Any

from penstock.cli.options import Home, Json, load_settings
from penstock.cli.output import note, say, show_json, show_problems, show_table

if TYPE_CHECKING:
    from penstock.settings import Loaded

MASK = "***"
SECRET_NAME = re.compile(r"pass(word|wd|phrase)?$|secret|token|api_?key|access.?key", re.IGNORECASE)
SECRET_IN_URL = re.compile(
    r"(://[^:/@\s]*:)[^@/\s]+(@)|([?&](?:password|token|secret)=)[^&\s]+", re.IGNORECASE
)


def config(home: Home = None, json: Json = False) -> None:
    """Show each setting with its value and where that came from."""
    loaded = load_settings(home=home)
    shown = settings_table(loaded)
    if json:
        warnings = [warning.model_dump() for warning in loaded.warnings]
        show_json({"file": loaded.file, "settings": shown, "warnings": warnings})
        return
    show_table(
        ["SETTING", "VALUE", "FROM"],
        [[name, _text(entry["value"]), entry["from"]] for name, entry in shown.items()],
    )
    note(f"\nfile: {loaded.file or 'no penstock.toml found'}")
    show_problems(loaded.warnings, level="warning")


def version(json: Json = False) -> None:
    """Show the versions of Penstock and of what it runs on."""
    found = versions()
    if json:
        show_json(found)
        return
    for name, value in found.items():
        say((f"{name:<9}", "bold"), value or "not found")


def settings_table(loaded: Loaded) -> dict[str, dict[str, Any]]:
    """Every setting by name: its effective value, secrets masked, and its origin."""
    return {
        name: {"value": masked(name, origin.value), "from": str(origin)}
        for name, origin in loaded.origins.items()
    }


def masked(name: str, value: Any) -> Any:
    """A value without the secrets in it: all of it if its name says so, passwords in URLs otherwise."""
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
    """The versions that matter when something does not work."""
    from importlib.metadata import version as installed

    return {
        "penstock": installed("penstock"),
        "python": platform.python_version(),
        "spark": installed("pyspark"),
        "java": _java(),
    }


def _java() -> str | None:
    import os
    import shutil

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


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


COMMANDS = (config, version)
