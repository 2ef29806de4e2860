"""A Darshan log as rows: DXT's segments where there are some, else requests from counters; Lustre's layouts beside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import WorkloadError
from ..comma import SIZE_MAX
from ..records import NUMBER_MAX, OP, UNKNOWN_OFFSET, Batch, Names, Notes, Process, Rows, blank
from .counters import EXPANDED_MAX, Counted, Heat, expanded, is_sane
from .parent import messages

#: As `struct segment_info` lies in memory; times in seconds since the job's start.
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start_s", "<f8"), ("end_s", "<f8")])
#: The module that counts what a DXT module traces.
_COUNTS = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}
_OPS = {"DXT_POSIX": ("write", "read"), "DXT_MPIIO": ("mpi_write", "mpi_read")}
#: What the heat map calls the modules.
_HEAT = {"heatmap:POSIX": "POSIX", "heatmap:MPIIO": "MPI-IO", "heatmap:STDIO": "STDIO"}
_SECONDS_MAX = 1e9
_RANK_MAX = (1 << 31) - 1
_CURE = "give a whole log, or skip such records with --lenient"
#: Segments that become rows at once.
_PIECE = 1 << 20


class _Log:
    """What one log has told so far."""

    def __init__(self, path: Path, names: Names, notes: Notes) -> None:
        self.path = path
        self.names = names
        self.notes = notes
        self.start_ns = 0
        self.world = -1
        self.command: list[str] = []
        self.modules: dict[str, bool] = {}
        self.paths: dict[int, int] = {}
        self.counted: list[tuple[int, Counted]] = []
        #: Segments by module and file.
        self.traced: dict[tuple[str, int], int] = defaultdict(int)
        self.layouts: list[dict[str, Any]] = []
        #: By module and rank.
        self.heats: dict[tuple[str, int], Heat] = {}
        self._processes: dict[tuple[int, str], Process] = {}

    def bad(self, why: str) -> None:
        self.notes.bad(str(self.path), why, _CURE)

    def process(self, rank: int, host: str = "") -> Process:
        """The process of a rank; of -1, all of them together."""
        key = (rank, "")
        made = self._processes.get(key)
        if made is None:
            made = self._processes[key] = Process(-1, 0, rank, self.world, host, self.command)
        made.host = made.host or host
        return made

    def job(self, about: dict[str, Any]) -> None:
        processes, start_ns = int(about["processes"]), int(about["start_ns"])
        if not 0 < processes <= _RANK_MAX or not 0 <= start_ns < NUMBER_MAX:
            raise WorkloadError(
                f"{self.path}: says that its job had {processes} processes and began at {start_ns} ns; give a whole log"
            )
        self.world, self.start_ns = processes, start_ns
        self.command = str(about["command"]).split()
        self.modules = dict(about["modules"])

    def segments(self, about: dict[str, Any], data: bytearray) -> Iterator[Batch]:
        """The rows of a DXT record."""
        rank, writes = int(about["rank"]), int(about["writes"])
        found = np.frombuffer(data, dtype=SEGMENT)
        times = (found["start_s"], found["end_s"])
        # A time that is not a number fits no comparison.
        fine = all(bool(((each >= 0) & (each < _SECONDS_MAX)).all()) for each in times)
        sizes = found["length"]
        fine &= not len(found) or (int(sizes.min()) >= 0 and int(sizes.max()) <= SIZE_MAX)
        if not fine or not -1 <= rank <= _RANK_MAX or (len(found) and int(found["offset"].max()) >= NUMBER_MAX):
            self.bad(f"a record of its module {about['module']} has times, sizes or offsets that cannot be")
            return
        self.traced[str(about["module"]), int(about["id"])] += len(found)
        process = self.process(rank, str(about["host"]))
        file = self.paths.get(int(about["id"]), -1)
        for first, last, op in zip((0, writes), (writes, len(found)), _OPS[str(about["module"])], strict=True):
            for begin in range(first, last, _PIECE):
                yield Batch(process, self._rows(found[begin : min(begin + _PIECE, last)], OP[op], file))

    def _rows(self, found: Any, op: int, file: int) -> Rows:
        rows = blank(len(found))
        rows["op"], rows["file"] = op, file
        rows["start_ns"] = np.rint(found["start_s"] * 1e9)
        rows["end_ns"] = np.rint(found["end_s"] * 1e9)
        rows["start_ns"] += self.start_ns
        rows["end_ns"] += self.start_ns
        np.maximum(rows["start_ns"], rows["end_ns"], out=rows["end_ns"])
        rows["offset"] = found["offset"]
        rows["requested"] = rows["done"] = found["length"]
        if len(found) and int(found["offset"].min()) < 0:
            unknown = rows["offset"] < 0
            rows["offset"][unknown] = 0
            rows["flags"][unknown] = UNKNOWN_OFFSET
        return rows

    def counters(self, about: dict[str, Any], data: bytearray) -> None:
        """Keeps records with counters until it is known what DXT has of their files."""
        whole, floating = list(about["counters"]), list(about["fcounters"])
        kind = np.dtype(
            [("id", "<u8"), ("rank", "<i8"), ("whole", "<i8", (len(whole),)), ("floating", "<f8", (len(floating),))]
        )
        if len(data) % kind.itemsize:
            raise WorkloadError(f"{self.path}: its records are not those of this libdarshan-util; upgrade darshan")
        for record in np.frombuffer(data, dtype=kind):
            number, rank = int(record["id"]), int(record["rank"])
            counted = Counted(
                str(about["module"]),
                self.paths.get(number, -1),
                rank,
                dict(zip(whole, record["whole"].tolist(), strict=True)),
                dict(zip(floating, record["floating"].tolist(), strict=True)),
            )
            if not -1 <= rank <= _RANK_MAX or not is_sane(counted):
                self.bad(f"a record of its module {counted.module} has counts that cannot be")
                continue
            self.counted.append((number, counted))

    def heat(self, about: dict[str, Any], data: bytearray) -> None:
        """Keeps when a rank moved how much."""
        code = self.paths.get(int(about["id"]), -1)
        module = _HEAT.get(self.names.texts[code].rsplit("/", 1)[-1]) if code >= 0 else None
        rank, bin_s = int(about["rank"]), float(about["bin_s"])
        bins = np.frombuffer(data, dtype="<i8").reshape(2, -1)
        fine = 0 < bin_s < _SECONDS_MAX and -1 <= rank <= _RANK_MAX and bool(((bins >= 0) & (bins < NUMBER_MAX)).all())
        if not fine:
            self.bad("a record of its module HEATMAP has bins that cannot be")
        elif module is not None:
            self.heats[module, rank] = Heat(bin_s, bins[0], bins[1])

    def _heat_of(self, counted: Counted) -> Heat | None:
        """Of the rank of a record; of all together where the record is of all."""
        if counted.rank >= 0 or (counted.module, -1) in self.heats:
            return self.heats.get((counted.module, counted.rank))
        each = [heat for (module, _), heat in self.heats.items() if module == counted.module]
        if not each or len({(heat.bin_s, len(heat.read)) for heat in each}) > 1:
            return None
        # Sums of as many numbers below NUMBER_MAX as there are ranks may be more than an int64 holds.
        written, read = (
            sum(np.asarray(getattr(h, name), dtype=np.float64) for h in each) for name in ("written", "read")
        )
        return Heat(each[0].bin_s, np.asarray(written), np.asarray(read))

    def lustre(self, about: dict[str, Any]) -> None:
        """How a file lies at present, as Lustre would be told."""
        code = self.paths.get(int(about["id"]), -1)
        path = self.names.texts[code] if code >= 0 else None
        self.layouts.append({"path": path, "kind": "lustre", "components": about["components"]})

    def finish(self) -> Iterator[Batch]:
        """Requests of files that DXT has nothing of, and what is incomplete."""
        partial = [module for module, is_partial in self.modules.items() if is_partial]
        if partial:
            self.miss(f"Darshan had no room for all records of {', '.join(sorted(partial))}")
        untraced, estimated = 0, 0
        left_out = room = 0
        expected: dict[str, int] = defaultdict(int)
        for number, counted in self.counted:
            dxt = next((name for name, counts in _COUNTS.items() if counts == counted.module), None)
            traced = dxt is not None and (dxt, number) in self.traced
            requests = counted.requests("reads") + counted.requests("writes")
            if traced and dxt is not None:
                expected[dxt] += requests
                continue
            if not counted.count:
                continue
            room += counted.count
            if room > EXPANDED_MAX:
                left_out += requests
                room -= counted.count
                continue
            untraced += 1
            estimated += requests
            yield Batch(self.process(counted.rank), expanded(counted, self.start_ns, self._heat_of(counted)))
        for dxt, requests in expected.items():
            self._compare(dxt, requests)
        if estimated:
            has_dxt = any(module in self.modules for module in _COUNTS)
            begin = "DXT has nothing of some files" if has_dxt else "it has no DXT (DXT_ENABLE_IO_TRACE=1 adds it)"
            self.miss(
                f"{begin}: sizes, offsets and times of {estimated:,} requests are estimated from {untraced:,} records "
                "of counters"
            )
        if left_out:
            self.miss(
                f"{left_out:,} counted requests are left out, for at most {EXPANDED_MAX:,} are made from counters"
            )
        if self.layouts:
            self.notes.extra.setdefault("layouts", []).extend(self.layouts)

    def _compare(self, dxt: str, requests: int) -> None:
        traced = sum(count for (module, _), count in self.traced.items() if module == dxt)
        if traced < requests:
            self.miss(
                f"{dxt} has {traced:,} of {requests:,} requests on its files: its cap was hit (DARSHAN_MODMEM raises "
                "it) or it was on for a part of the run"
            )

    def miss(self, reason: str) -> None:
        self.notes.miss(f"{self.path.name}: {reason}")


def read_darshan(files: Sequence[Path], names: Names, notes: Notes) -> Iterator[Batch]:
    """Reads Darshan logs, each of a job of its own; needs the package `darshan`."""
    for path in files:
        log = _Log(path, names, notes)
        for about, data in messages(path):
            kind = about["kind"]
            if kind == "job":
                log.job(about)
            elif kind == "names":
                log.paths.update((number, names.code(name)) for number, name in about["names"])
            elif kind == "segments":
                yield from log.segments(about, data)
            elif kind == "counters":
                log.counters(about, data)
            elif kind == "heat":
                log.heat(about, data)
            elif kind == "lustre":
                log.lustre(about)
            elif kind == "damaged":
                log.bad(about["why"])
            elif kind == "refused":
                raise WorkloadError(f"{path}: {about['why']}; give a log that Darshan wrote")
        yield from log.finish()
