"""Runs for figure 11 on emulated devices: a store, mpiio on it with or without a mover, and what each request took.

The file is filled once, through the library, onto the emulated hard disks. Every run begins with window 0's placement,
applied anew, is traced, and verifies what it reads. Meanwhile the file's layout is looked at several times a second:
that and the trace tell which requests were served by regions on hybrid servers, and when a window's moves were done.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from emulated_bench import MPIEXEC, MPIIO, RUN_S_MAX, STRIPEWISE, run
from numpy.typing import NDArray

from stripewise.cluster import Cluster, read_cluster
from stripewise.errors import StripewiseError
from stripewise.layout import Region
from stripewise.plan import Plan, write_plan
from stripewise.store import Store
from stripewise.workload.zipf import ZipfRun

#: Between two looks at the layout, seconds.
LOOK_S = 0.2

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass
class Outcome:
    """One run. Times are Unix seconds."""

    window_seconds: list[float]
    verified_bytes: int
    verify_seconds: float
    #: Of every read: when it began, how long it took, and whether its region was on hybrid servers then.
    start: Floats
    took_s: Floats
    hybrid: Bools
    #: When each look was taken, and which regions were on hybrid servers.
    looks: Floats
    resident: Bools
    #: What the mover printed, and its last status; empty without one.
    mover: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """All windows."""
        return sum(self.window_seconds)

    @property
    def came_in(self) -> int:
        """Regions that came to hybrid servers, between two looks."""
        return int((self.resident[1:] & ~self.resident[:-1]).sum())

    def window_reads(self, window: int) -> slice:
        """Which reads are a window's: a barrier is between two windows, and all have as many reads."""
        each = -(-len(self.start) // len(self.window_seconds))
        return slice(window * each, (window + 1) * each)

    def settled(self, window: int, wanted: Bools) -> float | None:
        """When the mover had brought about what `window` wants; None when it had not before the next one's reads."""
        begin = self.start[self.window_reads(window)].min()
        end = (self.start + self.took_s)[self.window_reads(window)].max()
        done = self.looks[(self.resident == wanted).all(axis=1) & (self.looks < end)]
        # A mover's clock runs a little ahead of the program's.
        return float(max(done[0], begin)) if len(done) else None


class Bench:
    """A scratch directory with targets, store and the file; `processes` ranks work on it."""

    def __init__(self, base: Path, cluster: Cluster, shape: ZipfRun) -> None:
        self.base = base
        self.data = base / "data"
        self.data.mkdir(parents=True)
        self.path = str(self.data / "zipf.dat")
        self.processes = shape.processes
        self.region_bytes = shape.region_bytes
        self.regions = shape.regions
        toml = base / "cluster.toml"
        toml.write_text("".join(target_toml(base, target) for target in cluster.targets))
        run(
            STRIPEWISE,
            "store",
            "create",
            base / "store",
            "--cluster",
            toml,
            "--manage",
            self.data,
            "--layout",
            "hservers",
        )
        self.store = Store(base / "store")
        self.cluster = read_cluster(base / "store")
        self.ssds = frozenset(target.name for target in self.cluster.sservers)
        options = ["--pattern", "zipf", "--file-size", str(shape.file_bytes), "--region-size", str(shape.region_bytes)]
        run(
            STRIPEWISE,
            "run",
            "--store",
            self.store.root,
            "--",
            *self._mpiio([*options, "--phases", "fill", "--stamp", "1"]),
        )
        self.identity = str(self.store.resolve(self.path))

    def _mpiio(self, options: Sequence[str]) -> list[str]:
        return [str(MPIEXEC), "-n", str(self.processes), str(MPIIO), "--file", self.path, *options]

    def measured(self, name: str, plan: Plan, shape: ZipfRun, mover: Sequence[str] | None) -> Outcome:
        """Window 0's placement, then the run; a mover with these options, if any, follows the plan meanwhile."""
        here = self.base / name
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        file = here / "plan.json"
        write_plan(plan, file)
        # Published layouts are measured as they are, the slower ones too.
        run(STRIPEWISE, "apply", file, "--anyway", "--store", self.store.root)
        command = self._mpiio([*shape.mpiio_options(), "--phases", "read", "--stamp", "1"])
        words = [STRIPEWISE, "run", "--store", self.store.root, "--trace", here / "trace", "--", *command]
        follow = [STRIPEWISE, "migrate", file, "--store", self.store.root, "--json", *(mover or ())]
        children = []
        looks: list[tuple[float, list[bool]]] = []
        try:
            job = started(words, here / "mpiio")
            children.append(job)
            if mover is not None:
                children.append(started(follow, here / "mover"))
            end = time.monotonic() + RUN_S_MAX
            while job.poll() is None and time.monotonic() < end:
                looks.append((time.time(), self._resident()))
                time.sleep(LOOK_S)
            looks.append((time.time(), self._resident()))
            for child in children[1:]:
                # What is left of its work is no longer the run's.
                if child.poll() is None:
                    child.send_signal(signal.SIGTERM)
                child.wait(timeout=60)
        finally:
            for child in children:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        said = last_json(here / "mpiio", job.returncode)
        if said["errors"]:
            raise StripewiseError(f"{name}: {said['errors']} wrong bytes were read; what it left is in {here}")
        run(STRIPEWISE, "collect", here / "trace", "--output", here / "collected")
        start, took_s, region = reads(here / "collected", self.path, self.region_bytes)
        at = np.array([when for when, _ in looks])
        resident = np.array([each for _, each in looks], dtype=bool)
        outcome = Outcome(
            window_seconds=list(said["read_window_seconds"]) if shape.windows > 1 else [said["read_seconds"]],
            verified_bytes=int(said["verified_bytes"]),
            verify_seconds=float(said["verify_seconds"]),
            start=start,
            took_s=took_s,
            hybrid=resident[np.clip(np.searchsorted(at, start), 0, len(at) - 1), region],
            looks=at,
            resident=resident,
        )
        if mover is not None:
            outcome.mover = last_json(here / "mover", None)
            outcome.status = json.loads(run(STRIPEWISE, "mover", "status", self.store.root, "--json"))
        return outcome

    def wanted(self, plan: Plan, window: int) -> Bools:
        """Which regions the plan has on hybrid servers in a window."""
        return np.array(self._on_hybrid(plan.layout_in_window(self.path, window)), dtype=bool)

    def _resident(self) -> list[bool]:
        return self._on_hybrid(self.store.layout(self.identity).regions)

    def _on_hybrid(self, regions: Sequence[Region]) -> list[bool]:
        """Which regions have a stripe on an SServer."""
        ours = [False] * self.regions
        for region in regions:
            if any(name in self.ssds for name, _ in region.stripes):
                first = region.start // self.region_bytes
                last = min(self.regions, (region.start + region.len) // self.region_bytes)
                ours[first:last] = [True] * (last - first)
        return ours


def started(words: Sequence[object], output: Path) -> subprocess.Popen[bytes]:
    with output.with_suffix(".out").open("wb") as out, output.with_suffix(".err").open("wb") as err:
        return subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )


def last_json(output: Path, code: int | None) -> dict[str, Any]:
    """The JSON that a program printed; StripewiseError when it failed."""
    text, errors = output.with_suffix(".out").read_text(), output.with_suffix(".err").read_text()
    if code:
        raise StripewiseError(f"{output.name} failed ({code})\n{text}{errors}")
    try:
        found = json.loads(text[text.index("{") :])
    except ValueError:
        raise StripewiseError(f"{output.name} said nothing\n{text}{errors}") from None
    return dict(found)


def reads(collected: Path, path: str, region_bytes: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Of every read of the file: when it began (Unix seconds), how long it took, and its region."""
    columns = ["layer", "op", "file", "offset", "start_ns", "end_ns", "managed"]
    table = pq.read_table(collected / "trace.parquet", columns=columns)
    rows = zip(*(table.column(name).to_pylist() for name in ("layer", "op", "file", "managed")), strict=True)
    keep = [layer == "posix" and op == "read" and file == path and managed for layer, op, file, managed in rows]
    zero = json.loads((collected / "meta.json").read_text())["zero_unix_ns"] / 1e9
    start, end = (table.column(name).to_numpy()[keep] / 1e9 for name in ("start_ns", "end_ns"))
    offset = table.column("offset").to_numpy(zero_copy_only=False)[keep].astype(np.int64)
    order = np.argsort(start, kind="stable")
    return (zero + start)[order], (end - start)[order], offset[order] // region_bytes


def target_toml(base: Path, target: Any) -> str:
    """A target's table in cluster.toml; its directory is made."""
    (base / "targets" / target.name).mkdir(parents=True)
    return (
        f'[[target]]\nname = "{target.name}"\nclass = "{target.klass}"\nkind = "emulated"\n'
        f'path = "targets/{target.name}"\ncapacity_bytes = {target.capacity_bytes}\n'
        f"startup_read_s = {target.startup_read_s}\nstartup_write_s = {target.startup_write_s}\n"
        f"per_byte_read_s = {target.per_byte_read_s}\nper_byte_write_s = {target.per_byte_write_s}\n\n"
    )
