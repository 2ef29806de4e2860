#!/bin/sh
# Fuzzes each parser of the native side for so many seconds: tools/fuzz.sh SECONDS. What it needs beside the project (a nightly compiler, a C++ one,
# cargo-fuzz) it says, and then does nothing; what it finds stays in fuzz/artifacts, and it fails.
set -eu
cd "$(dirname "$0")/../fuzz"
if ! cargo +nightly --version >/dev/null 2>&1 || ! command -v c++ >/dev/null; then
    echo 'fuzzing needs a C++ compiler and a nightly one for Rust (rustup toolchain install nightly): it does not run'
    exit 0
fi
command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
for target in layout store copies datatype log blocks path; do
    mkdir -p "corpus/$target"
    echo "fuzzing $target for $1 s"
    cargo +nightly fuzz run --fuzz-dir . "$target" "corpus/$target" "seeds/$target" -- -max_total_time="$1" -max_len=16384 -verbosity=0
done
