"""What programs pay for a small managed file: open + close, stat and a 4 KiB read, beside plain files of the same
directory's disk; with another library beside ours, both in one run by turns. Part of `make bench`.

Each library has a store of its own, so that neither meets what the other keeps at run time. One that lies in a checkout
with a command of its own has it made by that one: an older library does not read a newer store.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from bench_common import LIBRARY, ROOT, STRIPEWISE, Effort, make_store, run

CALLS = ROOT / "target/native/calls"
KINDS = {"open_close": "open + close", "stat": "stat", "pread_4k": "4 KiB pread"}
#: Nanoseconds of one call, by kind and side.
Costs = dict[str, dict[str, float]]


class Side:
    """One library on a store of its own."""

    def __init__(self, scratch: Path, name: str, library: Path) -> None:
        targets = [(f"t{n}", "hdd", "dir", 0.0, 0.0, 0.0) for n in range(4)]
        self.store, self.data = make_store(scratch / f"small-{name}", targets, command_beside(library))
        self.plain = scratch / f"small-{name}" / "plain"
        self.plain.mkdir()
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LD_PRELOAD": str(library),
            "STRIPEWISE_STORE": str(self.store),
        }

    def measured(self, batches: int) -> Costs:
        text = run(CALLS, "small", self.plain, self.data, batches, environment=self.environment)
        found: Costs = json.loads(text.splitlines()[-1])
        return found


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
    ours = Side(scratch, "ours", LIBRARY)
    theirs = Side(scratch, "theirs", other) if other else None
    pairs = [
        (ours.measured(effort.batches), theirs.measured(effort.batches) if theirs else None)
        for _ in range(effort.turns)
    ]
    entries: list[dict[str, object]] = []
    for kind, what in KINDS.items():
        plain, hooked, managed = (
            statistics.median(mine[kind][side] for mine, _ in pairs)
            for side in ("plain_ns", "hooked_plain_ns", "managed_ns")
        )
        entries.append(
            {
                "name": f"small.{kind}_ns",
                "value": round(managed, 1),
                "unit": f"ns of {what} on managed files of 4 KiB, four directories on one disk",
                "baseline": f"plain files {plain:.1f} ns, and {hooked:.1f} ns through the library",
                "ratio": round(managed / plain, 3),
            }
        )
        against = [ratio_of(yours, mine, kind) for mine, yours in pairs if yours]
        if against:
            theirs_ns = statistics.median(yours[kind]["managed_ns"] for _, yours in pairs if yours)
            entries.append(
                {
                    "name": f"small.{kind}_against",
                    "value": round(statistics.median(against), 3),
                    "unit": f"times as long with {other}",
                    "baseline": f"its {theirs_ns:.1f} ns, in {len(against)} turns; "
                    f"turns from {min(against):.3f} to {max(against):.3f}",
                    "ratio": round(statistics.median(against), 3),
                }
            )
    return entries
