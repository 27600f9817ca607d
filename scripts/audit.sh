#!/bin/sh
# Lists everything that Penstock depends on (build/sbom-*.json, CycloneDX), and fails for known vulnerabilities.
#
# The tools have an environment of their own, .venv-audit: their dependencies are not Penstock's.
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
# Both end with an error for a vulnerability and for a service that does not answer: audit.py tells which it was.
$TOOLS/bin/pip-audit --disable-pip --require-hashes -r requirements.lock --format json \
    >build/audit-python.json 2>build/audit.log || true
scripts/web.sh vulnerable >build/audit-web.json 2>>build/audit.log || true
.venv/bin/python scripts/audit.py
