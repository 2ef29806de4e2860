"""What programs pay for a small managed file: open + close, stat, creation with removal and a 4 KiB read, beside plain
files of the same file system (one in memory where we may mount it: a disk's journal would be measured instead); with
another library beside ours, both in one run by turns. Part of `make bench`.

Each library has a store of its own, so that neither meets what the other keeps at run time. One that lies in a checkout
with a command of its own has it made by that one: an older library does not read a newer store.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench_common import LIBRARY, ROOT, STRIPEWISE, Effort, make_store, run
from bench_fuse import passthrough

CALLS = ROOT / "target/native/calls"
#: Kinds of calls: what they are, and how many times a plain file's time they may take (none: said elsewhere).
KINDS = {
    "open_close": ("open + close", 6),
    "stat": ("stat", 5),
    "create_unlink": ("create + close + unlink", 8),
    "pread_4k": ("4 KiB pread", None),
}
#: Environment of programs without a library.
BARE = {"PATH": "/usr/bin:/bin"}
#: Nanoseconds of one call, by kind and side.
Costs = dict[str, dict[str, float]]


class Side:
    """One library on a store of its own."""

    def __init__(self, scratch: Path, name: str, library: Path) -> None:
        targets = [(f"t{n}", "hdd", "dir", 0.0, 0.0, 0.0) for n in range(4)]
        self.store, self.data = make_store(scratch / f"small-{name}", targets, command_beside(library))
        self.plain = scratch / f"small-{name}" / "plain"
        self.plain.mkdir()
        self.environment = {**BARE, "LD_PRELOAD": str(library), "STRIPEWISE_STORE": str(self.store)}

    def measured(self, batches: int) -> Costs:
        return _costs(self.plain, self.data, batches, self.environment)

    def beside(self, place: Path, batches: int) -> Costs:
        """Of another file system in the managed one's place, without the library."""
        return _costs(self.plain, place, batches, BARE)


def _costs(plain: Path, place: Path, batches: int, environment: Mapping[str, str]) -> Costs:
    found: Costs = json.loads(run(CALLS, "small", plain, place, batches, environment=environment).splitlines()[-1])
    return found


@contextmanager
def in_memory(place: Path, effort: Effort) -> Iterator[str]:
    """A file system in memory at `place` where one is wanted and we may mount it, else what is there: says which."""
    place.mkdir()
    wanted = effort.in_memory and os.geteuid() == 0
    mounted = wanted and subprocess.run(["mount", "-t", "tmpfs", "none", place], check=False, capture_output=True)
    if not mounted or mounted.returncode:
        yield "on disk"
        return
    try:
        yield "in memory"
    finally:
        subprocess.run(["umount", place], check=True)


def command_beside(library: Path) -> Path:
    """The `stripewise` command of the checkout that a library lies in, else ours."""
    # In a checkout it is python/stripewise/lib/libstripewise.so.
    above = library.parents
    own = above[3] / STRIPEWISE.relative_to(ROOT) if len(above) > 3 else STRIPEWISE
    return own if own.is_file() else STRIPEWISE


def ratio_of(first: Costs, second: Costs, kind: str) -> float:
    return first[kind]["managed_ns"] / second[kind]["managed_ns"]


def small(scratch: Path, effort: Effort, other: Path | None) -> list[dict[str, object]]:
    """An entry per kind of call; with `other`, one more each for the other library's time over ours."""
    base = scratch / "small"
    by_fuse: list[Costs] = []
    with in_memory(base, effort) as where, passthrough(base / "below", base / "fuse") as fuse:
        ours = Side(base, "ours", LIBRARY)
        theirs = Side(base, "theirs", other) if other else None
        pairs = []
        for _ in range(effort.turns):
            pairs.append((ours.measured(effort.batches), theirs.measured(effort.batches) if theirs else None))
            if fuse:
                by_fuse.append(ours.beside(fuse, effort.batches))
    entries: list[dict[str, object]] = []
    for kind, (what, goal) in KINDS.items():
        plain, hooked, managed, parts = (
            statistics.median(mine[kind][side] for mine, _ in pairs)
            for side in ("plain_ns", "hooked_plain_ns", "managed_ns", "parts_ns")
        )
        beside = f"{where}, four directories; plain {plain:.0f} ns, {hooked:.0f} ns through the library"
        if parts:
            beside += f", the bare calls that make and remove its parts {parts:.0f} ns ({parts / plain:.1f} times)"
        if by_fuse:
            beside += f", by FUSE {statistics.median(costs[kind]['managed_ns'] for costs in by_fuse):.0f} ns"
        entries.append(
            {
                "name": f"runtime.{kind}_ratio",
                "value": round(managed / plain, 2),
                "unit": f"times a plain file's {what}",
                "baseline": f"{beside}, managed {managed:.0f} ns" + (f"; goal {goal}" if goal else ""),
                "ratio": round(managed / plain / (goal or 1), 3),
            }
        )
        against = [ratio_of(yours, mine, kind) for mine, yours in pairs if yours]
        if against:
            theirs_ns = statistics.median(yours[kind]["managed_ns"] for _, yours in pairs if yours)
            entries.append(
                {
                    "name": f"runtime.{kind}_against",
                    "value": round(statistics.median(against), 3),
                    "unit": f"times as long with {other}",
                    "baseline": f"its {theirs_ns:.1f} ns, in {len(against)} turns; "
                    f"turns from {min(against):.3f} to {max(against):.3f}",
                    "ratio": round(statistics.median(against), 3),
                }
            )
    return entries
