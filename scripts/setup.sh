#!/bin/sh
# Updates .venv to a lock file (default: requirements.lock); does nothing if it is up to date.
#
# The stamp .venv/ready-<lock> contains the checksum of everything the installation depends on, so a checkout
# that only touches files installs nothing, and a moved or copied tree is detected. While .venv/incomplete
# exists, the environment is incomplete, and the next run starts over.
set -eu
cd "$(dirname "$0")/.."

LOCK=${1:-requirements.lock}
STAMP=.venv/ready-$LOCK

say() { echo "$*" >&2; }

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

can_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

# The newest Python that can create an environment, otherwise the newest one.
find_python() {
    found=
    for python in python3.14 python3.13 python3.12 python3.11 python3; do
        recent "$python" || continue
        if can_venv "$python"; then
            echo "$python"
            return
        fi
        found=${found:-$python}
    done
    echo "$found"
}

make_venv() {
    python=$(find_python)
    if [ -z "$python" ]; then
        say "Penstock needs Python 3.11 or newer, and there is none on the PATH."
        exit 1
    fi
    if ! can_venv "$python"; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
            say "$python cannot make virtual environments: installing $package"
            apt-get update -qq || true
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >&2 || true
        fi
        if ! can_venv "$python"; then
            say "$python cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install -y $package"
            exit 1
        fi
    fi
    say "Making .venv with $("$python" --version); the first time this downloads about half a gigabyte"
    mkdir -p .venv
    touch .venv/incomplete
    "$python" -m venv .venv
}

# Two set-ups of one tree must not write to the same environment.
if command -v flock >/dev/null; then
    exec 9>.venv.lock
    flock 9
fi

usable() { [ ! -e .venv/incomplete ] && recent .venv/bin/python; }

has_pip() { .venv/bin/python -m pip --version >/dev/null 2>&1; }

key() { { pwd; .venv/bin/python --version; cat pyproject.toml "$LOCK"; } | cksum; }

is() { [ -e "$1" ] && [ "$(cat "$1")" = "$(key)" ]; }

# Caches the bytecode of all modules that Penstock imports. Without it, a start takes three more seconds of processor
# time, and with PYTHONDONTWRITEBYTECODE, which many containers set, Python would never cache it.
compile() {
    [ "$LOCK" = requirements.lock ] || return 0
    is .venv/compiled && return
    env -u PYTHONDONTWRITEBYTECODE .venv/bin/python scripts/compile.py || return 0
    key >.venv/compiled
}

if is "$STAMP" && usable; then
    compile
    exit 0
fi
if ! usable || ! has_pip; then
    rm -rf .venv
    make_venv
fi

touch .venv/incomplete
rm -f "$STAMP"
say "Installing $LOCK"
# Modules that are never imported need not be compiled: that would take a third of the time.
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
pip install --quiet --no-compile --require-hashes -r "$LOCK"
pip install --quiet --no-deps -e .
key >"$STAMP"
rm .venv/incomplete
compile
