#!/bin/sh
# Checks style, types and layers of the Python code.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/ruff check
.venv/bin/ruff format --check
.venv/bin/mypy
.venv/bin/lint-imports
