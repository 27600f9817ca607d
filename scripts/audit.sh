#!/bin/sh
# Lists all dependencies of Penstock (build/sbom-*.json, CycloneDX), and fails if one has a known vulnerability.
#
# The tools have their own environment, .venv-audit: their dependencies are not Penstock's.
set -eu
cd "$(dirname "$0")/.."

TOOLS=.venv-audit
STAMP=$TOOLS/ready
made() { cksum <requirements-audit.lock; }

if [ ! -e $STAMP ] || [ "$(cat $STAMP)" != "$(made)" ]; then
    rm -rf $TOOLS
    .venv/bin/python -m venv $TOOLS
    $TOOLS/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-audit.lock
    made >$STAMP
fi

mkdir -p build
$TOOLS/bin/cyclonedx-py requirements --output-format JSON --output-file build/sbom-python.json requirements.lock
scripts/web.sh sbom >build/sbom-web.json
# Both fail for a vulnerability and for an unavailable service: audit.py distinguishes the two.
$TOOLS/bin/pip-audit --disable-pip --require-hashes -r requirements.lock --format json \
    >build/audit-python.json 2>build/audit.log || true
scripts/web.sh vulnerable >build/audit-web.json 2>>build/audit.log || true
.venv/bin/python scripts/audit.py
