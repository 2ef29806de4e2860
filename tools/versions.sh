#!/bin/sh
# Refuse early, with one sentence, what would fail late with many.
set -eu
for tool in cargo cc; do
    if ! command -v "$tool" >/dev/null; then
        echo "tools/versions.sh: $tool is not installed; Stripewise needs cc, cargo (Rust 1.88 or newer) and Python 3.11 or newer" >&2
        exit 1
    fi
done
release=$(rustc --version | sed 's/^rustc \([0-9]*\)\.\([0-9]*\).*/\1 \2/')
set -- $release
if [ "$1" -lt 1 ] || { [ "$1" -eq 1 ] && [ "$2" -lt 88 ]; }; then
    echo "tools/versions.sh: rustc $1.$2 is too old; Stripewise needs Rust 1.88 or newer (rustup update)" >&2
    exit 1
fi
