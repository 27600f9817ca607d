"""Builds the web app before it is packed, so that whoever installs Penstock needs no Node."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebApp(BuildHookInterface[Any]):
    """In a clone, brings penstock/ui in line with web/; a source distribution carries it ready."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Run before anything is packed. An editable installation packs nothing."""
        if version == "editable":
            return
        root = Path(self.root)
        if (root / "web").is_dir():
            # The script may set up an environment of its own, which must not look into that of this build.
            env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            subprocess.run([root / "scripts" / "web.sh"], env=env, check=True)
        if not (root / "penstock" / "ui" / "index.html").is_file():
            raise RuntimeError("the web app is missing: build from a clone or a source distribution")
