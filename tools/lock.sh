#!/bin/sh
# Renew requirements.lock: the newest versions of what requirements.txt names, with all that they need, as exact pins.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tools/venv.sh "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet -r requirements.txt
"$scratch/venv/bin/python" -m pip freeze >requirements.lock
