#!/bin/sh
# Make a Python environment in DIR, on a machine that may have nothing but the interpreter: Debian ships python3 without
# ensurepip, so its package python3-venv is installed when that is allowed, and asked for when it is not.
set -eu
directory=$1

suits() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

python=
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if suits "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "tools/venv.sh: no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3" >&2
    exit 1
fi

if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    root=
    if [ "$(id -u)" != 0 ]; then
        root="sudo -n"
    fi
    echo "tools/venv.sh: $python has no ensurepip; installing python$version-venv with apt-get" >&2
    if ! { command -v apt-get >/dev/null && $root apt-get update -qq && $root apt-get install -y -qq "python$version-venv" >/dev/null; }; then
        echo "tools/venv.sh: $python cannot make environments: install the package python$version-venv (as root: apt-get install python$version-venv) and run make again" >&2
        exit 1
    fi
fi
"$python" -m venv "$directory"
