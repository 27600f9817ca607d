"""Files that several directories of tests share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy_linked(source: Path, target: Path) -> None:
    """Copy a tree whose files are only ever replaced, not changed: links take no room and no time."""
    shutil.copytree(source, target, symlinks=True, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another volume
        shutil.copy2(source, target, follow_symlinks=False)
