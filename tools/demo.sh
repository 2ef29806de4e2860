#!/bin/sh
# The demo: eight MPI processes on one shared file over four emulated hard disks and two emulated SSDs that hold a sixth of the data.
# First the equal layout (DEF), then the one that H2DP plans from the trace of that run, then the one of best. The figures as JSON are in result.json.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
stripewise=$root/.venv/bin/stripewise
mpiexec=$root/.venv/bin/mpiexec
mpiio=$root/target/workloads/mpiio

mkdir -p "${TMPDIR:-$root/target/demo}"
scratch=$(mktemp -d "${TMPDIR:-$root/target/demo}/stripewise-demo.XXXXXX")
store=$scratch/store
file=$scratch/data/shared.dat
mkdir "$scratch/data"

emulated() { # name class startup_s per_byte_s capacity_bytes
    cat <<TOML
[[target]]
name = "$1"
class = "$2"
kind = "emulated"
path = "targets/$1"
capacity_bytes = $5
startup_read_s = $3
startup_write_s = $3
per_byte_read_s = $4
per_byte_write_s = $4

TOML
    mkdir -p "$scratch/targets/$1"
}

file_mib=${DEMO_MIB:-512}
# A sixth of the file on both SSDs together, each rounded down to 4 KiB.
ssd_bytes=$((file_mib * 1048576 / 12 / 4096 * 4096))
{
    for n in 0 1 2 3; do emulated "hdd$n" hdd 0.003 1e-8 0; done
    for n in 0 1; do emulated "ssd$n" ssd 0.0001 2.5e-9 "$ssd_bytes"; done
} >"$scratch/cluster.toml"

echo "Stripewise demo: everything is in $scratch"
"$stripewise" store create "$store" --cluster "$scratch/cluster.toml" --manage "$scratch/data"

status=0
"$stripewise" tune --store "$store" --policy h2dp,best --repeat 1 --region-size 1MiB --json -- \
    "$mpiexec" -n 8 "$mpiio" --file "$file" --pattern zipf --alpha 0.8 --region-size 1MiB --file-size ${file_mib}MiB \
    --request-size 256KiB --requests "${DEMO_REQUESTS:-256}" --if-missing-fill --phases fill,write,read >"$scratch/result.json" || status=$?
if [ "$status" != 0 ]; then
    cat "$scratch/result.json"
    echo "tools/demo.sh: stripewise tune failed (exit $status); what it left is in $scratch" >&2
    exit "$status"
fi

sed '$d' "$scratch/result.json"
cat <<TEXT

To go on:
  $stripewise store ls $store
  $stripewise store info $store
  $stripewise store fsck $store
  $stripewise run --store $store -- md5sum $file
  $stripewise run --store $store -- dd if=$file of=/dev/null bs=1M
  less $scratch/result.json     # all figures of the table, as JSON in the last line
  rm -r $scratch
TEXT
