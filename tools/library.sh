#!/bin/sh
# Build a preloaded library: tools/library.sh OUT PROFILE [CARGO-OPTION...]. cargo builds the runtime in that profile, cc links it with the shim.
# CC and CFLAGS are the caller's; CARGO_TARGET_DIR is where cargo keeps its output.
set -eu
cd "$(dirname "$0")/.."
out=$1
profile=$2
shift 2
sh tools/versions.sh
cargo build --locked --profile "$profile" -p stripewise-runtime "$@"
mkdir -p "$(dirname "$out")"
# Only what the shim marks EXPORT is visible to the program that the library is preloaded into; its constructor runs before all others. Nothing but
# the C library is loaded along with it, and it carries no debugging information: every program that starts pays for its size.
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS--O2} -std=gnu11 -fPIC -fvisibility=hidden -shared -Wall -Wextra -Werror=implicit-function-declaration -o "$out" \
    shim/*.c shim/*/*.c "${CARGO_TARGET_DIR:-target}/$profile/libstripewise_runtime.a" \
    -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-z,initfirst -Wl,-S -static-libgcc -lgcc_eh -lpthread -lm -ldl
