"""The catalogue of components that the tests of the forms run over, in TypeScript.

`python -m tests.web.catalogue` writes it again.
"""

import json
from pathlib import Path
from typing import Any

from penstock.specs.catalog import ROLES, catalog

FILE = Path(__file__).parents[2] / "web" / "src" / "test" / "catalogue.json"


def written() -> str:
    """Every component with its JSON Schema and its example."""
    found: list[dict[str, Any]] = [
        {
            "role": role,
            "type": name,
            "example": component.example,
            "schema": component.model_json_schema(by_alias=True),
        }
        for role in ROLES
        for name, component in sorted(catalog(role).classes.items())
    ]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written())
