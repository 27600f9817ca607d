"""`penstock jars`: the jars that connectors need and Spark does not include."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Home, Json, load_settings, settled
from penstock.cli.output import note, show_json, show_table
from penstock.cli.text import plural
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.connectors.base import Sink, Source

OWN_JARS = {"spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"}
"""Spark settings that may already include the jars."""


def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Sets of jars, such as `kafka`. Default: all.")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Download the jars of connectors for use without a network."""
    from penstock.spark.jars import SETS, JarCache, jars_of

    cache = JarCache.of(settled(load_settings(home=home)))
    wanted = names or list(SETS)
    for name in wanted:
        jars_of(name)  # rejects an unknown name before anything is downloaded
    files = [
        file
        for name in wanted
        for file in cache.fetch(name, lambda jar: note(f"downloading {jar.artifact} {jar.version}…"))
    ]
    if json:
        show_json({"files": [str(file) for file in files]})
    else:
        note(f"{plural(len(files), 'jar')} in {cache.directory}")


def ls(home: Home = None, json: Json = False) -> None:
    """List the jars of connectors, and whether they are on this machine."""
    from penstock.spark.jars import SETS, JarCache

    cache = JarCache.of(settled(load_settings(home=home)))
    found = [
        {
            "set": name,
            "group": jar.group,
            "artifact": jar.artifact,
            "version": jar.version,
            "sha256": jar.sha256,
            "file": None if (path := cache.kept(jar)) is None else str(path),
        }
        for name, each in SETS.items()
        for jar in each.jars
    ]
    if json:
        show_json({"directory": str(cache.directory), "jars": found})
        return
    rows = [
        [one["set"] or "", f"{one['group']}:{one['artifact']}", one["version"] or "", _here(one["file"])]
        for one in found
    ]
    show_table(["SET", "JAR", "VERSION", "HERE"], rows)
    note(f"\ndirectory: {cache.directory}")


def fetch_missing(settings: Settings, connectors: Sequence[Source | Sink]) -> None:
    """Download the jars that connectors need, with a note for each, unless the settings name their own."""
    from penstock.spark.jars import JarCache

    if OWN_JARS & settings.spark.keys():
        return
    cache = JarCache.of(settings)
    for name in sorted({each.needed_jars for each in connectors if each.needed_jars}):
        cache.fetch(name, lambda jar: note(f"downloading {jar.artifact} {jar.version}, once…"))


def _here(file: str | None) -> str:
    return "no" if file is None else "yes"
