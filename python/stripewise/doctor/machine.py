"""Checks of the machine: system calls that a container may refuse, limits, memory, and the MPI below the programs."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .finding import Examined, Finding, bad, note, ok

#: Fewer descriptors than this are used up by a program with a few striped files.
NOFILE_MIN, NOFILE_WISE = 64, 1024
MAP_COUNT_WISE = 65530
SHM_FREE_WISE_BYTES = 64 << 20
MPI_TIMEOUT_S = 20
AT_FDCWD = -100
#: Calls that the library cannot do without, with arguments that every kernel that knows them refuses or ignores:
#: name, number on x86-64, number elsewhere (the generic table), arguments.
CALLS = (
    ("openat", 257, 56, (AT_FDCWD, 0, 0, 0)),
    ("statx", 332, 291, (AT_FDCWD, 0, 0, 0, 0)),
    ("preadv2", 327, 286, (-1, 0, 0, 0, 0, 0)),
    ("pwritev2", 328, 287, (-1, 0, 0, 0, 0, 0)),
    ("renameat2", 316, 276, (AT_FDCWD, 0, AT_FDCWD, 0, 0)),
    ("fallocate", 285, 47, (-1, 0, 0, 0)),
    ("futex", 202, 98, (0, 1, 0, 0, 0, 0)),
    ("prlimit64", 302, 261, (0, resource.RLIMIT_NOFILE, 0, 0)),
)
#: Calls that it can do without: the same, then what is lost.
WISHED = (
    ("close_range", 436, 436, (0xFFFFFFFF, 0xFFFFFFFF, 0), "programs close descriptors one by one"),
    (
        "kcmp",
        312,
        272,
        (os.getpid(), os.getpid(), 0, 0, 0),
        "duplicated descriptors are told apart by marks across exec",
    ),
)


def refused(call: tuple[str, int, int, tuple[int, ...]]) -> int:
    """The error when a system call is unknown or filtered, else 0."""
    _, x86, generic, arguments = call
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    number = x86 if platform.machine() == "x86_64" else generic
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in arguments))
    error = ctypes.get_errno() if result == -1 else 0
    return error if error in (errno.ENOSYS, errno.EPERM) else 0


def system_calls_are_allowed(examined: Examined) -> Iterator[Finding]:
    """No filter of system calls is in the way of those that the library makes."""
    status = _words(examined.proc / "self/status")
    filtered = status.get("Seccomp", "0") != "0"
    lost = [call[0] for call in CALLS if refused(call)]
    if lost:
        yield bad(f"the system calls {', '.join(lost)} are refused", "allow them in the container's seccomp profile")
    for *call, loss in WISHED:
        if refused(tuple(call)):  # type: ignore[arg-type]
            yield note(f"the system call {call[0]} is refused: {loss}", "allow it in the container's seccomp profile")
    if not lost:
        yield ok(
            "every needed system call is allowed" + (" by the seccomp filter" if filtered else "; no seccomp filter")
        )


def mpi_is_found(examined: Examined) -> Iterator[Finding]:
    """The launchers on PATH and beside this Python, with their versions."""
    own = Path(sys.executable).parent / "mpiexec"
    found = dict.fromkeys(filter(None, [shutil.which("mpiexec", path=examined.environment.get("PATH")), str(own)]))
    versions = [f"{path}: {version}" for path in found if (version := _mpi_version(path))]
    yield ok("; ".join(versions) if versions else "no mpiexec; programs without MPI need none")


def ucx_leaves_mmap_alone(examined: Examined) -> Iterator[Finding]:
    """UCX (in some MPIs) patches mmap where no preloaded library sees it, unless told not to."""
    mode = examined.environment.get("UCX_MEM_MMAP_HOOK_MODE", "none")
    if mode != "none":
        yield note(
            f"UCX_MEM_MMAP_HOOK_MODE={mode}: UCX patches mmap, so maps of managed files fail (EACCES) under it",
            "unset it: stripewise run sets none",
        )
    elif ctypes.util.find_library("ucs"):
        yield ok("UCX is installed; stripewise run keeps it from patching mmap")


def limits_suffice(_: Examined) -> Iterator[Finding]:
    """Descriptors for one object per target and file, and files as long as they get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < NOFILE_MIN:
        yield bad(f"{soft} open descriptors are too few (each file needs two and one per target)", "raise ulimit -n")
    elif soft < NOFILE_WISE:
        yield note(
            f"{soft} open descriptors allow few striped files at a time", f"raise ulimit -n (at most {hard} here)"
        )
    else:
        yield ok(f"{soft} open descriptors")
    longest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if longest != resource.RLIM_INFINITY:
        yield note(
            f"files end at {longest} bytes, counted on each object and not on the file", "set ulimit -f unlimited"
        )


def shared_memory_has_room(examined: Examined) -> Iterator[Finding]:
    """MPI's processes on one machine exchange data through /dev/shm."""
    if not examined.shm.is_dir():
        yield note(f"{examined.shm} is missing, which MPI's processes on one machine share", "mount a tmpfs there")
        return
    space = os.statvfs(examined.shm)
    free = space.f_bavail * space.f_frsize
    if free < SHM_FREE_WISE_BYTES:
        yield note(
            f"{examined.shm} has {free >> 20} MiB free, which MPI may find too little", "enlarge it (--shm-size)"
        )
    else:
        yield ok(f"{examined.shm}: {free >> 20} MiB free")


def maps_suffice(examined: Examined) -> Iterator[Finding]:
    """Every open managed file is a few maps; page faults in user space serve maps of managed files."""
    count = _number(examined.proc / "sys/vm/max_map_count")
    if 0 < count < MAP_COUNT_WISE:
        yield note(f"vm.max_map_count is {count}", f"set it to {MAP_COUNT_WISE} or more: each open file takes maps")
    if _number(examined.proc / "sys/vm/unprivileged_userfaultfd") == 0 and os.geteuid() != 0:
        yield note(
            "vm.unprivileged_userfaultfd is 0: memory maps of managed files cannot be filled as they are touched",
            "set it to 1 if programs map large managed files",
        )


def _mpi_version(path: str) -> str:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, timeout=MPI_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = said.decode(errors="replace").splitlines()
    if lines and lines[0].startswith("HYDRA"):
        return "Hydra " + next((line.split(":")[1].strip() for line in lines if "Version:" in line), "")
    return lines[0].strip() if lines else ""


def _words(path: Path) -> dict[str, str]:
    try:
        pairs = (line.partition(":") for line in path.read_text().splitlines())
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in pairs}


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return -1
