#!/bin/sh
# Ensures that Spark finds Java 17 or newer: checks, installs it on Debian as root, or explains how to.
set -eu

WANTED=17

# Major version of the given java command, or 0 when it does not run ("1.8.0_292" is 8).
major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | grep -m1 . || echo 0
}

good() { [ "$(major "$1")" -ge "$WANTED" ]; }

# Spark prefers JAVA_HOME to the PATH, so installing another Java would not help here.
if [ -n "${JAVA_HOME:-}" ]; then
    good "$JAVA_HOME/bin/java" && exit 0
    echo "JAVA_HOME=$JAVA_HOME is not Java $WANTED or newer: unset it, or point it at one that is." >&2
    exit 1
fi

good java && exit 0

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "Java $WANTED or newer not found: installing it" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    for version in 17 21 25; do
        apt-get install -y -qq --no-install-recommends "openjdk-$version-jre-headless" >&2 && break
    done
    good java && exit 0
fi

cat >&2 <<MESSAGE
Penstock needs Java $WANTED or newer, and there is none on the PATH. Install it with:
  Debian, Ubuntu   sudo apt-get install -y openjdk-17-jre-headless    (or openjdk-21-jre-headless)
  macOS            brew install --cask temurin@21
  Windows          winget install EclipseAdoptium.Temurin.21.JRE
MESSAGE
exit 1
