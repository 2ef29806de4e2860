#!/bin/bash
# The first hour of a user: runs the ```sh blocks of README.md and docs/tutorial.md as they stand, in an empty directory, with the command of an environment
# (say one made from the wheel). A line `#> words` in a block is what its output must hold.
# Usage: first_hour.sh ENVIRONMENT [DIRECTORY-WITH-MPIEXEC]
set -euo pipefail
environment=$(cd "$1" && pwd)
pages=$(cd "$(dirname "$0")/.." && pwd)
export PATH="$environment/bin:$PATH${2:+:$2}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

blocks() { # page directory: a file per block, and what its output must hold beside it
    awk -v out="$2" '
        /^```sh$/ { inside = 1; number++; name = sprintf("%s/%03d", out, number); printf "" > (name ".sh"); printf "" > (name ".expect"); next }
        /^```$/ { inside = 0; next }
        inside && /^#> / { print substr($0, 4) > (name ".expect"); next }
        inside { print > (name ".sh") }
    ' "$1"
}

for page in README.md docs/tutorial.md; do
    place=$scratch/$(basename "$page" .md)
    mkdir -p "$place/blocks" "$place/work"
    blocks "$pages/$page" "$place/blocks"
    ls "$place/blocks/"*.sh >/dev/null
    for block in "$place/blocks/"*.sh; do
        echo "--- $page, block $(basename "$block" .sh)"
        cat "$block"
        said=$place/said
        status=0
        (cd "$place/work" && bash -euo pipefail "$block") >"$said" 2>&1 </dev/null || status=$?
        cat "$said"
        if [ "$status" != 0 ]; then
            echo "first_hour: $page: a block ended with status $status" >&2
            exit 1
        fi
        while IFS= read -r words; do
            if ! grep -qF -- "$words" "$said"; then
                echo "first_hour: $page: the output above does not hold '$words'" >&2
                exit 1
            fi
        done <"${block%.sh}.expect"
    done
done
# What a program reads is what was asked for, and nothing beside it, whatever the environment brought along.
place=$scratch/tutorial/work
if ! (cd "$place" && stripewise plan trace --cluster lab/cluster.toml -o again.json --json 2>/dev/null | python3 -m json.tool >/dev/null); then
    echo "first_hour: plan --json printed something that is not JSON" >&2
    exit 1
fi
echo "first_hour: all blocks ran"
