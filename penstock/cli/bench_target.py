"""The document that `penstock bench` measures, and the recorded streams that it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from penstock.cli.bench_worker import measure_on_worker
from penstock.cli.client import Client, path_of
from penstock.cli.files import Found, read_files
from penstock.cli.kinds import target_of
from penstock.cli.output import Usage
from penstock.cli.project import choose
from penstock.engine.measure.events import Input
from penstock.engine.measure.figures import Figures
from penstock.engine.measure.places import Recorded
from penstock.engine.plan.flow import Flow
from penstock.errors import Conflict, Problem
from penstock.settings import Settings
from penstock.specs.documents import derive_id
from penstock.specs.references import INPUT
from penstock.specs.text import SUFFIXES
from penstock.streams.config import FILE as CONFIG
from penstock.streams.home import StreamHome


class NotLocal(Conflict):
    """The stream of a server is not on this machine."""


OnWorker = Callable[[Flow, int, threading.Event, Callable[[str], None]], tuple[Input, Figures]]
"""Measures a flow with the last events of its stream, on the machine that stores them."""


@dataclass(frozen=True)
class Target:
    """A document, the documents it refers to, and the locations of its streams."""

    label: str
    raw: Mapping[str, Any]
    documents: Sequence[Any]
    recorded: Recorded
    """Raises `NotLocal` if a server has the stream on another machine."""
    on_worker: OnWorker


def is_file(text: str) -> bool:
    """Whether an argument names a file rather than a document of a server."""
    return text == "-" or Path(text).suffix in SUFFIXES or Path(text).exists()


def from_file(file: str, name: str | None, settings: Settings) -> Target:
    """A document on disk. Its streams are the streams with the same ids in the home directory."""
    found = read_files([file])
    chosen = choose(found, name, settings)
    root = StreamHome.of(settings).root

    def recorded(stream: str) -> Path | None:
        lives = [config.parent for config in root.glob(f"{stream}/*/{CONFIG}")]
        return max(lives, key=_newest, default=None)

    return Target(file, chosen.chosen, chosen.documents, recorded, _no_worker)


def _no_worker(*_: object) -> NoReturn:
    raise NotLocal(Problem(code="not_local", message="a document in a file has no worker"))


def _newest(directory: Path) -> float:
    return max(file.stat().st_mtime for file in directory.rglob("*") if file.is_file())


def from_server(client: Client, name: str, settings: Settings) -> Target:
    """A document of a server. Its streams are read from the server's data directory on this machine."""
    kind, target = target_of(name)
    saved = client.get(kind, target)
    documents = client.call("GET", "/bundle", params={"format": "json"})["documents"]
    raw = next(each for each in documents if each["kind"] == kind and _id(each) == saved["id"])
    home = StreamHome.of(settings)

    def recorded(stream: str) -> Path | None:
        pushed = stream.endswith(INPUT) and client.find("Stream", stream) is None
        owner = ("Pipeline", stream.removesuffix(INPUT)) if pushed else ("Stream", stream)
        life = client.fetch("GET", path_of(*owner)).headers["ETag"].strip('"').partition("-")[0]
        directory = home.directory(stream, life)
        if not (directory / CONFIG).is_file():
            message = f"the stream '{stream}' of {client.url} is not in {home.root}"
            hint = "run this on the server's machine, with --home if its data directory is not the default"
            raise NotLocal(Problem(code="not_local", message=message, path="spec.source", hint=hint))
        return directory

    on_worker = partial(measure_on_worker, client, name, raw)
    return Target(f"{saved['name']} revision {saved['revision']}", raw, documents, recorded, on_worker)


def revision(client: Client, name: str, number: int, target: Target) -> Target:
    """Another revision of the document of a target."""
    kind, document = target_of(name)
    found = client.call("GET", path_of(kind, document, "revisions", str(number)))
    raw = {**target.raw, "spec": found["document"]["spec"]}
    return Target(f"{document} revision {number}", raw, target.documents, target.recorded, target.on_worker)


def other_file(file: str, target: Target, settings: Settings) -> Target:
    """The document of another file to compare with the target, chosen by name if there are several."""
    found = read_files([file])
    name = str(target.raw["metadata"]["name"])
    same = [each for each in found if derive_id(each.name or "") == derive_id(name)]
    chosen = choose(found, name if any(_runs(each) for each in same) else None, settings)
    missing = [each for each in target.documents if not _is_in(each, chosen.documents)]
    return Target(file, chosen.chosen, [*chosen.documents, *missing], target.recorded, target.on_worker)


def refuse_mixed(name: str, against: str | None, number: int | None) -> None:
    """Reject options that exclude each other."""
    if against is not None and number is not None:
        message = "--against and --revision can't be combined"
        raise Usage(Problem(code="exclusive_options", message=message, hint="compare with one version"))
    if number is not None and is_file(name):
        message = "a file has no revisions"
        hint = "--against OTHER_FILE, or the name of a pipeline on a server with --revision"
        raise Usage(Problem(code="no_revisions", message=message, hint=hint))


def _runs(found: Found) -> bool:
    return found.kind not in ("Stream", None)


def _id(raw: Any) -> str:
    return derive_id(str(raw["metadata"]["name"]))


def _is_in(raw: Any, documents: Sequence[Any]) -> bool:
    return any(each.get("kind") == raw.get("kind") and _id(each) == _id(raw) for each in documents)
