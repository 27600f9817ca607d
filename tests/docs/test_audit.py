"""`scripts/audit.py`: what reports of vulnerabilities mean."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit.py"
spec = importlib.util.spec_from_file_location("audit", SCRIPT)
assert spec is not None
assert spec.loader is not None
audit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit)


def test_a_service_that_gives_no_answer_is_not_the_same_as_no_vulnerability() -> None:
    skipped = {"name": "a", "skip_reason": "not found"}
    sound = {"name": "b", "version": "1", "vulns": []}
    assert audit.python(None) is None
    assert audit.python({"dependencies": [skipped]}) is None
    assert audit.python({"dependencies": [skipped, sound]}) == []
    assert audit.web({"message": "405 Method Not Allowed"}) is None
    assert audit.web({"vulnerabilities": {}}) == []


def test_vulnerabilities_are_told_with_their_fix() -> None:
    fault = {"id": "CVE-1", "fix_versions": ["1.1"]}
    (told,) = audit.python({"dependencies": [{"name": "b", "version": "1", "vulns": [fault]}]})
    assert told == "b 1: CVE-1, fixed in 1.1"
    (told,) = audit.web({"vulnerabilities": {"x": {"range": "<2", "severity": "high"}}})
    assert told == "x <2: high"


def test_all_jars_are_in_the_bill_of_materials() -> None:
    found = audit.jars()["components"]
    assert {each["name"] for each in found} >= {"kafka-clients", "hadoop-aws"}
    assert all(len(each["hashes"][0]["content"]) == 64 for each in found)
