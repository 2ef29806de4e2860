#!/bin/sh
# Slurm's TaskProlog: as the user before each task, prints the variables that the task begins with. Run by tests/program/jobs/test_wheel.py, not by slurmd.
# The command itself says which: what it gives a program of its own is what the task gets.
set -eu
: "${SITE_JOBS:=/var/lib/stripewise}" "${SITE_COMMAND:=stripewise}"
job=$SITE_JOBS/$SLURM_JOB_ID
STRIPEWISE_LOG=$job/own/log
export STRIPEWISE_LOG
"$SITE_COMMAND" run --store "$job/own/store" -- env |
    sed -n '/^\(LD_PRELOAD\|STRIPEWISE_[A-Z_]*\|ASAN_OPTIONS\|TSAN_OPTIONS\|UCX_MEM_MMAP_HOOK_MODE\)=/s/^/export /p'
