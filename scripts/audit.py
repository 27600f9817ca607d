"""Writes the bill of materials of the jars, and prints the findings of the audits. See `audit.sh`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from penstock.spark.jars import SETS

BUILD = Path(__file__).parent.parent / "build"


def main() -> int:
    """Print all findings. Returns the exit code: 1 if a dependency has a known vulnerability."""
    (BUILD / "sbom-jars.json").write_text(json.dumps(jars(), indent=2))
    for part in ("python", "web", "jars"):
        listed = json.loads((BUILD / f"sbom-{part}.json").read_text())["components"]
        print(f"bill of materials: build/sbom-{part}.json, {len(listed)} packages")
    audits = {"Python": python(_read("audit-python.json")), "web app": web(_read("audit-web.json"))}
    for name, found in audits.items():
        if found is None:
            print(f"{name}: not audited, the advisory service gave no answer; see build/audit.log")
        else:
            print(f"{name}: {len(found) or 'no'} known vulnerabilities", *found, sep="\n  ")
    return int(any(audits.values()))


def jars() -> dict[str, Any]:
    """The jars of connectors, which users download when they need them."""
    components = [
        {
            "type": "library",
            "group": jar.group,
            "name": jar.artifact,
            "version": jar.version,
            "purl": f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}",
            "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        }
        for jar in sorted({jar for each in SETS.values() for jar in each.jars}, key=lambda jar: jar.path)
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}


def python(report: Any) -> list[str] | None:
    """The vulnerabilities in a report of pip-audit; None if it could not look up any."""
    packages = (report or {}).get("dependencies") or []
    if not packages or all("skip_reason" in each for each in packages):
        return None
    return [
        f"{each['name']} {each['version']}: {fault['id']}, fixed in {', '.join(fault['fix_versions']) or '-'}"
        for each in packages
        for fault in each.get("vulns", [])
    ]


def web(report: Any) -> list[str] | None:
    """The vulnerabilities in a report of `npm audit`; None if the registry does not provide any."""
    if not isinstance(report, dict) or "vulnerabilities" not in report:
        return None
    return [f"{name} {each['range']}: {each['severity']}" for name, each in report["vulnerabilities"].items()]


def _read(name: str) -> Any:
    try:
        return json.loads((BUILD / name).read_text())
    except ValueError:
        return None


if __name__ == "__main__":
    sys.exit(main())
