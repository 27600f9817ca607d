from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.policy.paths import Paths
from penstock.policy.policy import Policy
from penstock.settings import load

HOSTILE = [
    "/etc/passwd",
    "file:/etc/passwd",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:///etc/%70asswd",
    "file://{root}/../../../../../../../etc/passwd",
    "~/.ssh/id_rsa",
    "{root}/../secret.txt",
    "{root}/in/../../secret.txt",
    "{root}/{{in,../secret.txt}}",
    "{root}/{{a,b/{{c,../../../secret.txt}}}}",
    "{root}/in/*/../../../secret.txt",
    r"{root}/\.\./secret.txt",
    "{root}/link/secret.txt",
    "{root}/to_file",
    "{root}/link",
    "{root}/link/*.txt",
    "{root}/l*/secret.txt",
    "{root}/chain/secret.txt",
    "{root}/to_[f]ile",
    "{root}/up/../secret.txt",
    "{root}/\x00",
    "{root}/{{{many}}}",
    "/",
    "..",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with files, and links that lead out of it."""
    root = tmp_path / "root"
    (root / "in" / "a").mkdir(parents=True)
    (root / "in" / "a.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "other" / "below").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    (root / "chain").symlink_to(root / "link")
    (root / "to_file").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to(tmp_path / "other")
    return root


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_leads_out_is_refused_however_it_is_written(path: str, root: Path) -> None:
    many = ",".join(map(str, range(100)))
    assert not Paths((str(root),)).allows(path.format(root=root, many=many))


@pytest.mark.parametrize(
    "path",
    ["{root}", "{root}/in/a.json", "{root}/in/*.json", "{root}/new/out", "file://{root}/in",
     "{root}/in/../in/a.json", "{root}/{{in,new}}/*", "{root}/in/a[^b].json"],
)  # fmt: skip
def test_a_path_below_a_root_is_allowed(path: str, root: Path) -> None:
    assert Paths((str(root),)).allows(path.format(root=root))


def test_a_directory_whose_files_are_read_must_not_hold_a_link_that_leads_out(root: Path) -> None:
    paths = Paths((str(root),))
    assert paths.allows(f"{root}/in", files=True)
    (root / "in" / "deep").mkdir()
    (root / "in" / "deep" / "passwd").symlink_to("/etc/passwd")
    assert not paths.allows(f"{root}/in", files=True)
    assert not paths.allows(f"{root}/*", files=True)
    assert paths.allows(f"{root}/in")


def test_a_root_may_itself_be_a_link(tmp_path: Path, root: Path) -> None:
    (tmp_path / "data").symlink_to(root)
    settings = load({"home": tmp_path, "policy.paths": [str(tmp_path / "data")]}, env={}).settings
    assert Policy.of(settings).paths.allows(str(tmp_path / "data" / "in" / "a.json"))


def test_by_default_home_and_the_start_directory_are_allowed_without_penstocks_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, home = tmp_path / "start", tmp_path / "start" / ".penstock"
    home.mkdir(parents=True)
    (home / "registry.db").touch()
    (start / "penstock.toml").touch()
    monkeypatch.chdir(start)
    paths = Policy.of(load({"home": home}, env={}).settings).paths
    assert all(map(paths.allows, ["in/a.json", f"{home}/demo/in", f"{start}/out", ".", str(home)]))
    own = ["registry.db", "streams/orders/x", "worker.key", "flows", "*.db", "run/../registry.db"]
    assert not any(paths.allows(f"{home}/{each}") for each in own)
    assert not paths.allows("penstock.toml")
    assert not paths.allows(str(home), files=True)
    assert not paths.allows(".", files=True)
    assert not paths.allows(str(tmp_path))


def test_directories_that_a_cluster_shares_are_allowed_but_not_its_checkpoints(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    storage = {"storage.shared": [str(shared)], "storage.url": str(shared / "flows")}
    paths = Policy.of(load({"home": tmp_path / "home", **storage}, env={}).settings).paths
    assert paths.allows(f"{shared}/out")
    assert not paths.allows(f"{shared}/flows/some/offsets")
    assert not paths.allows(str(tmp_path))


def test_the_root_of_the_file_system_is_no_start_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    paths = Policy.of(load({"home": tmp_path}, env={}).settings).paths
    assert not paths.allows("/etc/passwd")
    assert paths.roots == (os.path.realpath(tmp_path),)


def test_roots_come_from_the_setting_and_its_variable(tmp_path: Path) -> None:
    env = {"PENSTOCK_POLICY_PATHS": f"{tmp_path}/a:{tmp_path}/b"}
    paths = Policy.of(load({"home": tmp_path / "home"}, env=env).settings).paths
    assert paths.allows(f"{tmp_path}/b/x")
    assert not paths.allows(f"{tmp_path}/home/x")
