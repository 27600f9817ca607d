from __future__ import annotations

from pathlib import Path

import pytest

from penstock.policy.addresses import Addresses, hosts_in
from penstock.policy.policy import Policy
from penstock.settings import load

METADATA = [
    "169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376", "169.254.43518", "169.0xfea9fe", "169.16689662", "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::1]",
    "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "%31%36%39.254.169.254",
    "\uff11\uff16\uff19.254.169.254",
    "169.254.1.1", "100.100.100.200",
]  # fmt: skip

PRIVATE = [
    "127.0.0.1", "localhost", "x.localhost", "LOCALHOST", "0.0.0.0", "0", "127.1", "2130706433", "10.1.2.3",
    "172.16.0.1", "192.168.1.1", "100.64.0.1", "[::1]", "[::]", "[fc00::1]", "[::ffff:10.0.0.1]", "224.0.0.1",
]  # fmt: skip

PUBLIC = ["93.184.216.34", "example.com", "[2606:4700::1111]"]


@pytest.mark.parametrize("host", METADATA)
def test_metadata_addresses_are_refused_in_every_spelling(host: str) -> None:
    assert Addresses(private=True).refused(host, resolve=False) is not None


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_are_allowed_or_refused_by_the_setting(host: str) -> None:
    assert Addresses(private=True).refused(host, resolve=False) is None
    assert Addresses(private=False).refused(host, resolve=False) is not None


@pytest.mark.parametrize("host", PUBLIC)
def test_public_addresses_are_allowed(host: str) -> None:
    assert Addresses(private=False).refused(host, resolve=False) is None


def test_every_address_of_a_name_counts() -> None:
    known = {"two.example": ["93.184.216.34", "169.254.169.254"], "one.example": ["93.184.216.34"]}
    rule = Addresses(resolver=lambda host: known.get(host, []))
    assert rule.refused("two.example", resolve=True) == "169.254.169.254"
    assert rule.checked("two.example") == "169.254.169.254"
    assert rule.checked("one.example") == ["93.184.216.34"]
    assert rule.refused("two.example", resolve=False) is None
    assert rule.checked("unknown.example") == []


@pytest.mark.parametrize(
    ("allowed", "host"),
    [("169.254.169.254", "2852039166"), ("10.0.0.0/8", "10.9.9.9"), ("db.internal", "DB.internal."),
     ("*.internal", "a.b.internal")],
)  # fmt: skip
def test_listed_networks_and_names_are_allowed(allowed: str, host: str, tmp_path: Path) -> None:
    given = {"home": tmp_path, "policy.private_addresses": "refuse", "policy.addresses": [allowed, "x"]}
    addresses = Policy.of(load(given, env={}).settings).addresses
    assert addresses.refused(host, resolve=True) is None
    assert addresses.refused("fe80::1", resolve=True) is not None


@pytest.mark.parametrize(
    ("chosen", "users", "allowed"),
    [("auto", False, True), ("auto", True, False), ("allow", True, True), ("refuse", False, False)],
)
def test_private_addresses_by_default_depend_on_users(
    chosen: str, users: bool, allowed: bool, tmp_path: Path
) -> None:
    settings = load({"home": tmp_path, "policy.private_addresses": chosen}, env={}).settings
    found = Policy.of(settings, users=users).addresses.refused("10.0.0.1", resolve=False)
    assert (found is None) == allowed


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("http://user:p@a.example:80/x?u=http://b", ["a.example"]),
        ("a:1,b:2", ["a", "b"]),
        ("[::1]:5", ["::1"]),
        ("::1", ["::1"]),
        ("http://a.example\\@b/", ["b"]),
        ("http://169.254.169.254#@a.example/", ["169.254.169.254"]),
    ],
)
def test_hosts_are_found_in_urls_and_addresses(text: str, hosts: list[str]) -> None:
    assert hosts_in(text) == hosts
