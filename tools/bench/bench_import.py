"""Imports of foreign traces, for `make bench`: segments of Darshan's DXT a second, beside PyDarshan's data frames."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from bench_common import ROOT, Effort

from stripewise.importing.darshan.reader import SEGMENT, read_darshan
from stripewise.importing.formats import import_trace
from stripewise.importing.records import Names, Notes

sys.path.append(str(ROOT / "tools"))
from darshan_log import Writer

RANKS = 64
#: Segments a second.
GOAL = 2_000_000
#: PyDarshan makes an object of each segment: it gets a log of so many times fewer.
FEWER = 16
#: In a process of its own, as whoever uses PyDarshan has it; prints the segments, and the seconds without its start.
PYDARSHAN = """
import sys, time
from darshan import DarshanReport
begun = time.perf_counter()
report = DarshanReport(sys.argv[1], read_all=False)
report.mod_read_all_dxt_records("DXT_POSIX", dtype="pandas")
records = report.records["DXT_POSIX"].to_df()
count = sum(len(record["write_segments"]) + len(record["read_segments"]) for record in records)
print(count, time.perf_counter() - begun)
"""


def write_log(path: Path, count: int) -> int:
    """A log of `count` segments of all ranks on a shared file, times and offsets by chance; how many it has."""
    writer, chance = Writer(), np.random.default_rng(1)
    each = max(1, count // (2 * RANKS))

    def segments() -> np.ndarray[tuple[int, ...], np.dtype[np.void]]:
        made = np.zeros(each, SEGMENT)
        made["offset"] = chance.integers(0, 1 << 24, each) << 16
        made["length"] = 1 << 16
        made["start_s"] = np.cumsum(chance.exponential(1e-3, each))
        made["end_s"] = made["start_s"] + chance.exponential(5e-4, each)
        return made

    whole = {"POSIX_READS": each * RANKS, "POSIX_WRITES": each * RANKS}
    records = [("POSIX", writer.counters("POSIX", 1, -1, whole))]
    records += [("DXT_POSIX", writer.segments(1, rank, segments(), segments())) for rank in range(RANKS)]
    writer.write(path, {1: "/scratch/shared"}, records, processes=RANKS)
    return 2 * each * RANKS


def importing(scratch: Path, effort: Effort) -> dict[str, object]:
    """The import of a log from the file to trace.parquet; beside it, how fast its segments become arrays."""
    log, small = scratch / "big.darshan", scratch / "small.darshan"
    count = write_log(log, effort.segments)
    write_log(small, effort.segments // FEWER)
    begun = time.perf_counter()
    meta = import_trace("darshan", [log], scratch / "imported")
    whole_s = time.perf_counter() - begun
    assert meta["records"] == count and not meta["partial"], meta["partial"]
    begun = time.perf_counter()
    rows = sum(len(batch.rows) for batch in read_darshan([log], Names(scratch), Notes()))
    arrays_s = time.perf_counter() - begun
    assert rows == count
    said = subprocess.run([sys.executable, "-c", PYDARSHAN, small], check=True, capture_output=True, text=True).stdout
    theirs, theirs_s = said.split()
    per_s = float(theirs) / float(theirs_s)
    return {
        "name": "import.dxt_segments_per_s",
        "value": round(count / whole_s),
        "unit": f"segments/s, {count} of {RANKS} ranks, from the log to trace.parquet",
        "baseline": f"PyDarshan to data frames: {per_s:.0f}; goal {GOAL}; to arrays alone: {count / arrays_s:.0f}",
        "ratio": round(count / whole_s / GOAL, 3),
        "pydarshan_per_s": round(per_s),
        "arrays_per_s": round(count / arrays_s),
        "log_bytes": log.stat().st_size,
    }
