#!/bin/sh
# Slurm's Epilog: as root on each node, removes the job's store and what is in it. Run by tests/program/jobs/test_wheel.py, not by slurmd.
set -eu
: "${SITE_JOBS:=/var/lib/stripewise}"
job=$SITE_JOBS/${SLURM_JOB_ID:?}
[ -d "$job" ] || exit 0
while read -r target; do
    rm -rf --one-file-system "$target"
done <"$job/targets"
rm -rf --one-file-system "$job"
