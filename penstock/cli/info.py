"""`penstock config` and `penstock version`: settings and versions of this installation."""

from __future__ import annotations

from typing import Any

from penstock.cli.options import Home, Json, load_settings
from penstock.cli.output import note, say, show_json, show_problems, show_table
from penstock.control.monitor.installation import shown_settings, versions


def config(home: Home = None, json: Json = False) -> None:
    """Show each setting with its value and origin."""
    loaded = load_settings(home=home)
    shown = shown_settings(loaded)
    if json:
        settings = {each.name: {"value": each.value, "from": each.origin} for each in shown}
        warnings = [warning.model_dump() for warning in loaded.warnings]
        show_json({"file": loaded.file, "settings": settings, "warnings": warnings})
        return
    show_table(["SETTING", "VALUE", "FROM"], [[each.name, _text(each.value), each.origin] for each in shown])
    note(f"\nfile: {loaded.file or 'no penstock.toml found'}")
    show_problems(loaded.warnings, level="warning")


def version(json: Json = False) -> None:
    """Show the versions of Penstock, Spark, Python and Java."""
    found = versions()
    if json:
        show_json(found)
        return
    for name, value in found.items():
        say((f"{name:<9}", "bold"), value or "not found")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
