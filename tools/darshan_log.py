"""Writes Darshan logs with libdarshan-util's own functions: big ones for the benchmark, strange ones for the tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stripewise.importing.darshan.library import Library
from stripewise.importing.darshan.reader import SEGMENT

_DECLARED = """
struct written_name { uint64_t id; char name[4096]; };
struct written_hash {
    struct written_name *name; void *table, *previous, *next, *chain_previous, *chain_next, *key;
    unsigned key_bytes, value;
};
void *darshan_log_create(const char *, int, int);
int darshan_log_put_job(void *, struct darshan_job *);
int darshan_log_put_exe(void *, char *);
int darshan_log_put_mounts(void *, struct darshan_mnt_info *, int);
int darshan_log_put_namehash(void *, struct written_hash *);
int darshan_log_put_mod(void *, int, void *, int, int);
"""
#: Number of the module in a log and version of its records.
MODULES = {
    "POSIX": (1, 4),
    "MPI-IO": (2, 3),
    "LUSTRE": (8, 2),
    "STDIO": (9, 2),
    "DXT_POSIX": (10, 1),
    "DXT_MPIIO": (11, 2),
    "HEATMAP": (15, 1),
}
_NAME_BYTES_MAX = 4000


class Writer:
    """One library, any number of logs."""

    def __init__(self) -> None:
        self.library = Library()
        self.library.ffi.cdef(_DECLARED)

    def write(
        self,
        path: Path,
        names: Mapping[int, str],
        records: Iterable[tuple[str, bytes]],
        processes: int = 1,
        start_s: int = 1_700_000_000,
        partial: int = 0,
        command: str = "./app",
    ) -> None:
        """A log with these records, each (module, bytes); those of a module stand together, modules in MODULES' order.

        Bit n of `partial`: the module of number n is partial.
        """
        ffi, lib = self.library.ffi, self.library.lib
        path.unlink(missing_ok=True)
        log = lib.darshan_log_create(os.fsencode(path), 0, partial)
        assert log != ffi.NULL, path
        job = ffi.new("struct darshan_job *")
        job.start_time_sec, job.end_time_sec, job.nprocs, job.jobid = start_s, start_s + 100, processes, 1
        assert lib.darshan_log_put_job(log, job) == 0
        assert lib.darshan_log_put_exe(log, ffi.new("char[]", command.encode())) == 0
        mounts = ffi.new("struct darshan_mnt_info[1]")
        mounts[0].mnt_type, mounts[0].mnt_path = b"ext4", b"/"
        assert lib.darshan_log_put_mounts(log, mounts, 1) == 0
        held, first = self._hash(names)
        assert lib.darshan_log_put_namehash(log, first) == 0
        for module, data in records:
            number, version = MODULES[module]
            got = lib.darshan_log_put_mod(log, number, ffi.from_buffer(data), len(data), version)
            assert got >= 0, (module, got)
        lib.darshan_log_close(log)
        del held

    def _hash(self, names: Mapping[int, str]) -> tuple[list[Any], Any]:
        """A list that looks like uthash's to who only goes through it, and all that must outlive it."""
        ffi = self.library.ffi
        entries: list[Any] = []
        for number, name in names.items():
            record = ffi.new("struct written_name *")
            record.id, record.name = number, os.fsencode(name)[:_NAME_BYTES_MAX]
            entry = ffi.new("struct written_hash *")
            entry.name = record
            if entries:
                entries[-1][0].next = entry
            entries.append((entry, record))
        return entries, entries[0][0] if entries else ffi.NULL

    def counters(self, module: str, number: int, rank: int, values: Mapping[str, float]) -> bytes:
        """A record of counters, by their names; all others are 0."""
        structure, short = {
            "POSIX": ("struct darshan_posix_file", "posix"),
            "MPI-IO": ("struct darshan_mpiio_file", "mpiio"),
            "STDIO": ("struct darshan_stdio_file", "stdio"),
        }[module]
        record = self.library.ffi.new(f"{structure} *")
        record.base_rec.id, record.base_rec.rank = number, rank
        whole, floating = self.library.counter_names(short)
        for name, value in values.items():
            if name in whole:
                record.counters[whole.index(name)] = int(value)
            else:
                record.fcounters[floating.index(name)] = value
        return bytes(self.library.ffi.buffer(record))

    def heat(self, number: int, rank: int, bin_s: float, written: list[int], read: list[int]) -> bytes:
        """A record of the heat map; its name is `heatmap:POSIX` or the like."""
        record = self.library.ffi.new("struct darshan_heatmap_record *")
        record.base_rec.id, record.base_rec.rank = number, rank
        record.bin_width_seconds, record.nbins = bin_s, len(written)
        return bytes(self.library.ffi.buffer(record)) + np.array([written, read], dtype="<i8").tobytes()

    def segments(self, number: int, rank: int, writes: np.ndarray[Any, Any], reads: np.ndarray[Any, Any]) -> bytes:
        """A DXT record; `writes` and `reads` are arrays of `SEGMENT`."""
        record = self.library.ffi.new("struct dxt_file_record *")
        record.base_rec.id, record.base_rec.rank, record.hostname = number, rank, b"node0"
        record.write_count, record.read_count = len(writes), len(reads)
        data = np.concatenate([writes, reads]).astype(SEGMENT).tobytes()
        return bytes(self.library.ffi.buffer(record)) + data
