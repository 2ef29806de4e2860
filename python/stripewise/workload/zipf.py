"""The zipf pattern of workloads/mpiio.c as a workload, so that a plan can be made for a run before it is run.

Request i of a rank is a pure function of seed, rank, phase and i, with the same arithmetic as pattern.c: regions are
hot by a Zipf law, and in every window those `shift` places further down in popularity are the hot ones.
`mpiio_options` gives the command line that issues these very requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..units import KIB, MIB
from .requests import REQUEST_DTYPE, FileRequests, Requests, Workload

_U64 = NDArray[np.uint64]
_MASK = (1 << 64) - 1
#: Phases as pattern.c numbers them.
WRITE, READ = 0, 1


@dataclass(frozen=True)
class ZipfRun:
    """A run of mpiio with --pattern zipf: so many reads and writes per rank, in windows that begin every `window_s`."""

    processes: int = 32
    file_bytes: int = 2048 * 64 * MIB
    region_bytes: int = 64 * MIB
    request_bytes: int = 64 * KIB
    reads: int = 0
    writes: int = 0
    alpha: float = 0.8
    windows: int = 1
    shift: int = 0
    window_s: float = 600.0
    seed: int = 1

    @property
    def regions(self) -> int:
        """Regions that differ in popularity."""
        return self.file_bytes // self.region_bytes

    def mpiio_options(self) -> list[str]:
        """The options of mpiio that issue these requests; --file, --phases and what to verify are the caller's."""
        options = {
            "pattern": "zipf", "file-size": self.file_bytes, "region-size": self.region_bytes,
            "request-size": self.request_bytes, "reads": self.reads, "writes": self.writes, "alpha": self.alpha,
            "windows": self.windows, "shift": self.shift, "window-seconds": self.window_s, "seed": self.seed,
        }  # fmt: skip
        return [word for key, value in options.items() for word in (f"--{key}", f"{value}")]

    def offsets(self, rank: int, phase: int) -> NDArray[np.int64]:
        """The offsets of a rank's requests in the write or the read phase, in their order."""
        count = self.writes if phase == WRITE else self.reads
        request = np.arange(count, dtype=np.uint64)
        draw = _mix(np.uint64(_mix_one(_mix_one(self.seed) ^ (rank << 1 | phase))) ^ request)
        popularity = np.searchsorted(self._cumulative(), (draw >> np.uint64(11)) * 2.0**-53, side="right")
        popularity = np.minimum(popularity, self.regions - 1)
        window = request.astype(np.int64) // max(1, self._per_window(phase))
        region = self._places()[(popularity + self.shift % self.regions * window) % self.regions]
        slot = _below(_mix(draw), self.region_bytes // self.request_bytes)
        return np.asarray(region * self.region_bytes + slot * self.request_bytes, dtype=np.int64)

    def _per_window(self, phase: int) -> int:
        return -(-(self.writes if phase == WRITE else self.reads) // self.windows)

    def _cumulative(self) -> NDArray[np.float64]:
        shares = np.cumsum(np.arange(1, self.regions + 1, dtype=np.float64) ** -self.alpha)
        return np.asarray(shares / shares[-1], dtype=np.float64)

    def _places(self) -> NDArray[np.int64]:
        """Where the region of a popularity rank lies in window 0."""
        places = list(range(self.regions))
        for k in range(self.regions - 1, 0, -1):
            other = _mix_one(_mix_one(self.seed) ^ k) * (k + 1) >> 64
            places[k], places[other] = places[other], places[k]
        return np.array(places, dtype=np.int64)

    def workload(self, path: str = "/data/zipf.dat") -> Workload:
        """The requests of all ranks: those of a window are spread evenly over it, and reads follow writes.

        mpiio begins a window when the one before is done and its time has come; here none takes longer than its time.
        """
        parts = []
        before_ns = 0
        for phase in (WRITE, READ):
            each = self._per_window(phase)
            if not each:
                continue
            window_ns = round(self.window_s * 1e9)
            ranks = range(self.processes)
            parts += [self._requests(rank, phase, each, window_ns, before_ns) for rank in ranks]
            before_ns += self.windows * window_ns
        requests = np.concatenate(parts) if parts else np.zeros(0, dtype=REQUEST_DTYPE)
        requests = requests[np.argsort(requests["start_ns"], kind="stable")]
        file = FileRequests(path, requests, self.file_bytes)
        return Workload((file,), self.processes, "a zipf run", ("mpiio", *self.mpiio_options()))

    def _requests(self, rank: int, phase: int, each: int, window_ns: int, before_ns: int) -> Requests:
        """One rank's requests of a phase that begins at `before_ns`."""
        offsets = self.offsets(rank, phase)
        number = np.arange(len(offsets), dtype=np.int64)
        pause_ns = window_ns // each
        requests = np.zeros(len(offsets), dtype=REQUEST_DTYPE)
        requests["start_ns"] = before_ns + number // each * window_ns + number % each * pause_ns
        requests["end_ns"] = requests["start_ns"] + pause_ns
        requests["rank"], requests["write"] = rank, phase == WRITE
        requests["offset"], requests["size"] = offsets, self.request_bytes
        return requests


def _mix_one(number: int) -> int:
    """SplitMix64's output function, as pattern.c has it."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31


def _mix(numbers: _U64) -> _U64:
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


def _below(random: _U64, bound: int) -> NDArray[np.int64]:
    """random * bound / 2^64 for a bound below 2^32, without 128-bit numbers."""
    low, high, width = random & np.uint64(0xFFFFFFFF), random >> np.uint64(32), np.uint64(bound)
    return ((high * width + (low * width >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)
