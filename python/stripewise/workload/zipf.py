"""The zipf pattern of workloads/mpiio.c as a workload, so that a plan can be made for a run before it is run.

Regions are hot by a Zipf law, and in every window those `shift` places further down in popularity are the hot ones. The
requests come from the generator of described workloads; `mpiio_options` gives the command line that issues the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..units import KIB, MIB
from .describe import Description
from .generated import generated_workload, requests_of
from .requests import Workload

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

    @property
    def description(self) -> Description:
        """The same as a workload description."""
        return Description(
            kind="zipf", processes=self.processes, request_bytes=((self.request_bytes, 1.0),),
            file_bytes=self.file_bytes, region_bytes=self.region_bytes, alpha=self.alpha, reads=self.reads,
            writes=self.writes, windows=self.windows, shift=self.shift, window_seconds=self.window_s, seed=self.seed,
            source="a zipf run",
        )  # fmt: skip

    def offsets(self, rank: int, phase: int) -> NDArray[np.int64]:
        """The offsets of a rank's requests in the write or the read phase, in their order."""
        requests = requests_of(self.description, rank)
        return np.asarray(requests["offset"][requests["write"] == (phase == WRITE)], dtype=np.int64)

    def workload(self, path: str = "/data/zipf.dat") -> Workload:
        """The requests of all ranks: those of a window are spread evenly over it, and reads follow writes.

        mpiio begins a window when the one before is done and its time has come; here none takes longer than its time.
        """
        description = replace(self.description, path=path)
        made = generated_workload(description, self.processes * (self.reads + self.writes))
        return replace(made, command=("mpiio", *self.mpiio_options()))
