"""A file on a store of emulated devices, and MPI jobs on it: what the simulator's validation and the experiments share.

A bench has one store and one file; it lays the file out as a plan says, runs mpiio under the preloaded library as a
description says, and reads the devices' own counters before and after.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stripewise.cluster import read_cluster
from stripewise.errors import StripewiseError
from stripewise.plan import Plan, write_plan
from stripewise.store import Store
from stripewise.units import GRANULE_BYTES, MIB
from stripewise.workload.describe import Description

ROOT = Path(__file__).resolve().parent.parent
STRIPEWISE = ROOT / ".venv/bin/stripewise"
MPIEXEC = ROOT / ".venv/bin/mpiexec"
MPIIO = ROOT / "target/workloads/mpiio"
#: No run takes longer.
RUN_S_MAX = 600.0
COUNTERS = ("busy_read_ns", "busy_write_ns", "accesses_read", "accesses_write", "startups")


@dataclass(frozen=True)
class Device:
    """An emulated device: reads and writes alike; `capacity_bytes` 0 is no limit."""

    name: str
    klass: str
    startup_s: float
    per_byte_s: float
    capacity_bytes: int = 0

    def as_toml(self) -> str:
        """Its part of cluster.toml."""
        return (
            f'[[target]]\nname = "{self.name}"\nclass = "{self.klass}"\nkind = "emulated"\npath = "{self.name}"\n'
            f"capacity_bytes = {self.capacity_bytes // GRANULE_BYTES * GRANULE_BYTES}\n"
            f"startup_read_s = {self.startup_s}\nstartup_write_s = {self.startup_s}\n"
            f"per_byte_read_s = {self.per_byte_s}\nper_byte_write_s = {self.per_byte_s}\n"
        )


@dataclass(frozen=True)
class Measured:
    """A run that was measured: MB/s and seconds as the program says, `served` the counters of each device."""

    mb_s: float
    seconds: float
    served: Mapping[str, Mapping[str, int]]

    @property
    def busy_s(self) -> dict[str, float]:
        """Seconds that each device was busy."""
        return {name: (row["busy_read_ns"] + row["busy_write_ns"]) / 1e9 for name, row in self.served.items()}


def run(*command: object) -> str:
    """A command that must succeed; its standard output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=RUN_S_MAX)
    if done.returncode:
        raise StripewiseError(f"{shlex.join(words)} failed ({done.returncode})\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    """A scratch directory with the store and the file."""

    def __init__(self, base: Path, file_bytes: int, devices: Sequence[Device]) -> None:
        self.base = base
        self.file_bytes = file_bytes
        data = base / "data"
        data.mkdir(parents=True)
        self.path = data / "file.dat"
        for device in devices:
            (base / device.name).mkdir()
        (base / "cluster.toml").write_text("\n".join(device.as_toml() for device in devices))
        made = ("--cluster", base / "cluster.toml", "--manage", data, "--layout", "hservers")
        run(STRIPEWISE, "store", "create", base / "store", *made)
        self.store = Store(base / "store")
        self.cluster = read_cluster(base / "store")

    def lay_out(self, plan: Plan) -> None:
        """A new file with this plan: what other points left on the devices is gone."""
        if self.path.is_symlink():
            run(STRIPEWISE, "run", "--store", self.store.root, "--", "rm", self.path)
        fill = self._mpiio(2, ["--request-size", MIB, "--phases", "fill"])
        run(STRIPEWISE, "run", "--store", self.store.root, "--", *fill)
        file = self.base / "plan.json"
        write_plan(plan, file)
        # Published layouts are measured as they are, the slower ones too.
        run(STRIPEWISE, "apply", file, "--anyway", "--store", self.store.root)

    def measure(self, described: Description, operation: str, trace: Path | None = None) -> Measured:
        """Runs what is described, which reads or writes only; traced where there is a directory for it."""
        ((request_bytes, _),) = described.request_bytes
        options: list[object] = [
            *("--pattern", described.kind, "--request-size", request_bytes, "--region-size", described.region_bytes),
            *("--reads", described.reads, "--writes", described.writes, "--seed", described.seed),
            *("--alpha", described.alpha, "--phases", operation, "--no-verify"),
        ]
        tracing = [] if trace is None else ["--trace", trace]
        before = self._counters()
        job = self._mpiio(described.processes, options)
        said = json.loads(run(STRIPEWISE, "run", "--store", self.store.root, *tracing, "--", *job).splitlines()[-1])
        after = self._counters()
        served = {name: {key: now[key] - before[name][key] for key in now} for name, now in after.items()}
        return Measured(float(said[f"{operation}_mb_s"]), float(said[f"{operation}_seconds"]), served)

    def _mpiio(self, processes: int, options: list[object]) -> list[object]:
        return [MPIEXEC, "-n", processes, MPIIO, "--file", self.path, "--file-size", self.file_bytes, *options]

    def _counters(self) -> dict[str, dict[str, int]]:
        return {str(row["name"]): {key: int(row[key]) for key in COUNTERS} for row in self.store.devices()}
