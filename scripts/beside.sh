#!/bin/sh
# Runs two commands in parallel: scripts/beside.sh NAME 'COMMAND' NAME 'COMMAND'
#
# A line reports the start and the end of each command. The output of the second one is shown when both have ended.
# Fails if one of them fails, after the other one has ended.
set -eu
cd "$(dirname "$0")/.."

say() { echo "== $(date +%H:%M:%S) $*" >&2; }

# Without flock, two set-ups of the same environment could run at once.
if ! command -v flock >/dev/null; then
    say "$1"
    sh -ec "$2"
    say "$3"
    exec sh -ec "$4"
fi

began=$(date +%s)
failed=0
ended() { # NAME CODE
    [ "$2" = 0 ] && how="done" || { how="failed with exit code $2" failed=$2; }
    say "$1: $how, $(($(date +%s) - began)) s"
}

printed=$(mktemp)
say "$1, and beside it $3"
sh -ec "$4" >"$printed" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null || true; rm -f "$printed"' EXIT
trap 'exit 130' INT TERM

code=0
sh -ec "$2" || code=$?
ended "$1" $code
code=0
wait "$beside" || code=$?
cat "$printed"
ended "$3" $code
exit $failed
