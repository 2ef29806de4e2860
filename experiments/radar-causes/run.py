"""RADAR: what the gain of a replica on disks comes from, one thing changed at a time. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import MIB, arguments, finish, home_of, write_result
from radar import (
    COLUMN_STEPS,
    MEANINGS,
    MODEL,
    PER_NODE,
    SEEDS,
    SIDE,
    STEPS_READ,
    Disks,
    column,
    gain_row,
    independent,
    modelled,
)
from shingled_pictures import draw_groups

#: Sectors per track at which a disk reads 90 MB/s: what the paper's disks gave without PVFS (section III-A).
FAST_SECTORS = 1560
CHANGED = {
    "disks": Disks(),
    "1 MiB turns": Disks(unit=MIB),
    "sorted by C-LOOK": Disks(queue="c-look"),
    "no read-ahead": Disks(reads_on=False),
    "90 MB/s": Disks(sectors=FAST_SECTORS),
    "pages kept": Disks(keeps=True),
    "pages kept, 1 MiB turns": Disks(keeps=True, unit=MIB),
}
#: Decomposition, clients, where in X, Y and Z a subvolume of `time` begins.
CASES = (
    ("row", 1, 0), ("row", 8, 0), ("row", 128, 0), ("column", 8, 0), ("column", 16, 0), ("cube", 8, 0),
    ("cube", 16, 0), ("time", 1, 0), ("time", 16, 0), ("time", 16, SIDE // 4),
)  # fmt: skip


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, STEPS_READ)
    rows = []
    for kind, clients, begin in CASES:
        steps = min(COLUMN_STEPS if kind == "column" else STEPS_READ, given.requests)
        case = modelled(independent(kind, clients, steps, begin), PER_NODE)
        name = f"{kind}, inner subvolume" if begin else kind
        rows.append(gain_row(name, clients, case, CHANGED, given.seeds))
    changes = {
        "disks": "128 KiB turns in order of arrival, 45 MB/s, gaps below 128 KiB are read over",
        "no read-ahead": "pages without a wanted byte are skipped; runs end there",
        "90 MB/s": "disks twice as fast as Table II",
        "inner subvolume": "the middle of X, Y and Z, not their beginning: so that it has a part of every stripe",
    }
    write_result(given.out, {"rows": rows, **MEANINGS, **changes, "seeds": given.seeds, "time_steps": given.requests})
    panels = []
    for kind in dict.fromkeys(kind for kind, _, _ in CASES):
        mine = [row for row in rows if row["decomposition"].startswith(kind)]
        ticks = [f"{row['clients']}{', inner' if 'inner' in row['decomposition'] else ''}" for row in mine]
        panels.append((f"{kind}, clients", ticks, {name: column(mine, name) for name in (MODEL, *CHANGED)}))
    draw_groups(given.out / "result.svg", "What a replica's gain comes from, simulated", "times as fast", panels)


if __name__ == "__main__":
    finish(main)
