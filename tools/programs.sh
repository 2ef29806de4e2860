#!/bin/sh
# Install the small programs of the tests (most are the matrix's, tests/program/matrix) that this machine lacks, where apt and root allow it; never fails.
# With names, only those. Large ones (Java, Go, PostgreSQL, parallel HDF5 and netCDF) are used when they are there.
set -u

missing=
only="$*"
need() { # program, Debian package
    [ -z "$only" ] || case " $only " in *" $1 "*) ;; *) return ;; esac
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need_header() { # header, Debian package
    [ -z "$only" ] || return
    printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1 || missing="$missing $2"
}
need rsync rsync
need sqlite3 sqlite3
need fio fio
need vim.tiny vim-tiny
need gawk gawk
need patch patch
need perl perl
need bzip2 bzip2
need xz xz-utils
need zstd zstd
need zip zip
need unzip unzip
need cpio cpio
need busybox busybox-static
need git git
need strace strace
need setfattr attr
need column bsdextrautils
# What the benchmark of small files is held beside.
need bindfs bindfs
# What programs are watched with, and emulated by.
need valgrind valgrind
need gdb gdb
need "qemu-$(uname -m)" qemu-user
# MPIs beside those of the wheels, with Fortran.
need mpicc.mpich "mpich libmpich-dev"
need mpicc.openmpi "openmpi-bin libopenmpi-dev"
need gfortran gfortran
# What pages are looked at with.
need chromium chromium
need chromedriver chromium-driver
# File systems that tests make and cut the power of.
need mkfs.xfs xfsprogs
need mkfs.ext4 e2fsprogs
# Libraries that a test links a program with.
need_header liburing.h liburing-dev
need_header libaio.h libaio-dev

[ -n "$missing" ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 </dev/null ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 </dev/null && exit 0
fi
echo "not here, so not compared:$missing (apt-get install$missing)"
exit 0
