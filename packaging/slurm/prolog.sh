#!/bin/sh
# Slurm's Prolog: as root on each node of a job, makes the job a store over the node's own disks. Run by tests/program/jobs/test_wheel.py, not by slurmd.
# A cluster.toml of the site in which %JOB% stands in every path of a target (path = "/nvme0/%JOB%").
set -eu
: "${SITE_CLUSTER:=/etc/stripewise/cluster.toml}" "${SITE_JOBS:=/var/lib/stripewise}" "${SITE_COMMAND:=stripewise}"
job=$SITE_JOBS/$SLURM_JOB_ID
mkdir -p "$SITE_JOBS"
# Root's: what the epilog removes is listed in it.
mkdir -m 755 "$job"
mkdir -m 700 "$job/own" "$job/own/data"
sed "s/%JOB%/$SLURM_JOB_ID/g" "$SITE_CLUSTER" >"$job/cluster.toml"
sed -n 's/^ *path *= *"\(.*\)" *$/\1/p' "$job/cluster.toml" >"$job/targets"
while read -r target; do
    mkdir -m 700 "$target"
    chown "$SLURM_JOB_UID" "$target"
done <"$job/targets"
chown "$SLURM_JOB_UID" "$job/own" "$job/own/data"
setpriv --reuid "$SLURM_JOB_UID" --regid "$SLURM_JOB_GID" --init-groups \
    "$SITE_COMMAND" store create "$job/own/store" --cluster "$job/cluster.toml" --manage "$job/own/data" >&2
