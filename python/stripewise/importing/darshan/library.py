"""libdarshan-util of the PyPI package `darshan`, without the package around it, which loads pandas and matplotlib.

Only the child process uses this: a damaged log may make the C library crash, hang or ask for all memory.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Iterator
from typing import Any

#: Structures of records by module.
COUNTER_MODULES = {
    "POSIX": ("struct darshan_posix_file", "posix"),
    "MPI-IO": ("struct darshan_mpiio_file", "mpiio"),
    "STDIO": ("struct darshan_stdio_file", "stdio"),
}
DXT_MODULES = ("DXT_POSIX", "DXT_MPIIO")
#: Segments that a record may say it has.
SEGMENTS_MAX = 1 << 31
#: Bins that a record of the heat map may say it has.
HEAT_BINS_MAX = 1 << 20
#: Bytes that hold a path of an executable with its arguments, in any version of the format.
_EXE_BYTES = 1 << 14


class LibraryError(Exception):
    """The library, or the log, is not what it should be: the message is for the user."""


def package_directory() -> str | None:
    """Where the package `darshan` is, without importing it; None where it is not installed."""
    for name in ("darshan", "cffi"):
        if importlib.util.find_spec(name) is None:
            return None
    spec = importlib.util.find_spec("darshan")
    places = spec.submodule_search_locations if spec is not None else None
    return places[0] if places else None


class Library:
    """The library loaded, with the declarations that its package brings."""

    def __init__(self) -> None:
        directory = package_directory()
        if directory is None:
            raise LibraryError(
                "the package darshan is not installed; install it with: pip install 'stripewise[darshan]'"
            )
        cffi: Any = importlib.import_module("cffi")

        spec = importlib.util.spec_from_file_location("_darshan_api", f"{directory}/backend/api_def_c.py")
        if spec is None or spec.loader is None:
            raise LibraryError(f"{directory} has no backend/api_def_c.py; install darshan 3.4 or newer")
        declared = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(declared)
        self.ffi: Any = cffi.FFI()
        self.ffi.cdef(declared.load_darshan_header())
        bundled = glob.glob(f"{os.path.dirname(directory)}/darshan.libs/libdarshan-util*.so*")
        try:
            self.lib: Any = self.ffi.dlopen(bundled[0] if bundled else "libdarshan-util.so")
        except OSError as error:
            raise LibraryError(f"libdarshan-util cannot be loaded ({error}); install darshan's wheel") from error

    def text(self, pointer: Any) -> str:
        return str(self.ffi.string(pointer).decode("utf-8", "surrogateescape"))

    def counter_names(self, short: str) -> tuple[list[str], list[str]]:
        """Names of a module's whole and floating counters."""
        found = []
        for kind, end in (("", ""), ("f_", "F_")):
            table = getattr(self.lib, f"{short}_{kind}counter_names")
            names: list[str] = []
            while not (name := self.text(table[len(names)])).endswith(f"{end}NUM_INDICES"):
                names.append(name)
            found.append(names)
        return found[0], found[1]


class Log:
    """One open log."""

    def __init__(self, library: Library, path: str) -> None:
        self.library = library
        self.ffi, self.lib = library.ffi, library.lib
        self.handle = self.lib.darshan_log_open(os.fsencode(path))
        if self.handle == self.ffi.NULL:
            raise LibraryError("is no Darshan log that this libdarshan-util reads")
        self.modules = self._modules()

    def _modules(self) -> dict[str, dict[str, Any]]:
        infos, count = self.ffi.new("struct darshan_mod_info **"), self.ffi.new("int *")
        self.lib.darshan_log_get_modules(self.handle, infos, count)
        found = {}
        for place in range(count[0]):
            info = infos[0][place]
            found[self.library.text(info.name)] = {"idx": info.idx, "partial": bool(info.partial_flag)}
        return found

    def job(self) -> dict[str, Any]:
        """Who ran, when, with how many processes."""
        job = self.ffi.new("struct darshan_job *")
        if self.lib.darshan_log_get_job(self.handle, job) < 0:
            raise LibraryError("tells nothing of its job: it is damaged")
        exe = self.ffi.new("char[]", _EXE_BYTES)
        has_exe = self.lib.darshan_log_get_exe(self.handle, exe) >= 0
        return {
            "start_ns": job.start_time_sec * 10**9 + job.start_time_nsec,
            "processes": job.nprocs,
            "job": job.jobid,
            "command": self.library.text(exe) if has_exe else "",
            "modules": {name: info["partial"] for name, info in self.modules.items()},
        }

    def names(self) -> Iterator[tuple[int, str]]:
        """(id, path) of every record."""
        records, count = self.ffi.new("struct darshan_name_record **"), self.ffi.new("int *")
        self.lib.darshan_log_get_name_records(self.handle, records, count)
        for place in range(count[0]):
            yield records[0][place].id, self.library.text(records[0][place].name)

    def records(self, module: str) -> Iterator[Any]:
        """Pointers to a module's records, each good until the next. Raises LibraryError at one that is damaged."""
        index = self.modules[module]["idx"]
        while True:
            buffer = self.ffi.new("void **")
            got = self.lib.darshan_log_get_record(self.handle, index, buffer)
            if got < 0:
                raise LibraryError(f"its module {module} has a damaged record")
            if got == 0:
                return
            try:
                yield buffer[0]
            finally:
                self.lib.darshan_free(buffer[0])

    def counters(self, module: str) -> Iterator[bytes]:
        """The records of a module with counters, as they lie in memory."""
        bytes_each = self.ffi.sizeof(COUNTER_MODULES[module][0])
        for pointer in self.records(module):
            yield bytes(self.ffi.buffer(pointer, bytes_each))

    def segments(self, module: str) -> Iterator[tuple[dict[str, Any], Any]]:
        """The DXT records of a module: what they say of themselves, and their segments, writes before reads."""
        header, each = self.ffi.sizeof("struct dxt_file_record"), self.ffi.sizeof("struct segment_info")
        for pointer in self.records(module):
            record = self.ffi.cast("struct dxt_file_record *", pointer)
            writes, reads = record.write_count, record.read_count
            if not (0 <= writes <= SEGMENTS_MAX and 0 <= reads <= SEGMENTS_MAX):
                raise LibraryError(f"its module {module} has a record of {writes} writes and {reads} reads")
            host = bytes(self.ffi.buffer(record.hostname)).split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
            about = {"id": record.base_rec.id, "rank": record.base_rec.rank, "host": host}
            data = self.ffi.buffer(self.ffi.cast("char *", pointer) + header, (writes + reads) * each)
            yield {**about, "writes": writes, "reads": reads}, data

    def heat(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """When each rank moved how many bytes: what a record says of itself, and its bins, those of writes first."""
        for pointer in self.records("HEATMAP"):
            record = self.ffi.cast("struct darshan_heatmap_record *", pointer)
            count = record.nbins
            if not 0 <= count <= HEAT_BINS_MAX:
                raise LibraryError(f"its module HEATMAP has a record of {count} bins")
            about = {"id": record.base_rec.id, "rank": record.base_rec.rank, "bin_s": record.bin_width_seconds}
            # The library has both arrays behind the record, one after the other.
            yield (
                about,
                bytes(self.ffi.buffer(record.write_bins, 8 * count))
                + bytes(self.ffi.buffer(record.read_bins, 8 * count)),
            )

    def lustre(self) -> Iterator[dict[str, Any]]:
        """How files lay on Lustre, component by component."""
        names: list[str] = []
        while not (name := self.library.text(self.lib.lustre_comp_counter_names[len(names)])).endswith("NUM_INDICES"):
            names.append(name.removeprefix("LUSTRE_COMP_").lower())
        for pointer in self.records("LUSTRE"):
            record = self.ffi.cast("struct darshan_lustre_record *", pointer)
            components, at = [], 0
            for place in range(record.num_comps):
                counters = dict(zip(names, list(record.comps[place].counters), strict=False))
                count = min(max(0, counters.get("stripe_count", 0)), record.num_stripes - at)
                osts = [record.ost_ids[at + ost] for ost in range(count)]
                at += count
                pool = bytes(self.ffi.buffer(record.comps[place].pool_name)).split(b"\0", 1)[0]
                components.append({**counters, "pool": pool.decode("utf-8", "backslashreplace"), "osts": osts})
            yield {"id": record.base_rec.id, "components": components}
