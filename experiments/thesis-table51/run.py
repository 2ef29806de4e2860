"""Thesis, tables 5.1 and 5.3: the schemes as run, and how they compare, by figures of thesis-fig53. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from statistics import geometric_mean
from typing import Any

from common import arguments, home_of, write_result
from shingled import GB, Case, Load, cheetah_setup, finish_with_data, rows_of, run_cases, schemes, used
from shingled_pictures import draw_groups
from stripewise.swd.simulate import Scheme, Setup

COLD = "tstl-smart, cold mode"
NAMES = ("hdd", "tstl-smart", COLD, "tstl-greedy", "R(4123)", "is")
#: Kind and tracks of a band; table 5.1.
KINDS = {
    "hdd": ("HDD", "none"), "tstl-smart": ("O-SWD", "100"), COLD: ("O-SWD", "100"), "tstl-greedy": ("O-SWD", "100"),
    "R(4123)": ("I-SWD", "4"), "is": ("O-SWD", "none"),
}  # fmt: skip
PUBLISHED_GB = {"hdd": 140.0, "tstl-smart": 140.0, "tstl-greedy": 140.0, "R(4123)": 112.0, "is": 140.0}
SIZES = ("30 GB", "60 GB", "90 GB", "120 GB")
#: Bytes of an entry, both ways: of a track (5.2.2), of a block of the E-region (6 GB need 96 MB), of an S-block.
ENTRY_BYTES = 8


def metadata_mb(name: str, setup: Setup) -> float:
    """MB of tables that are held in memory, by the thesis's own count."""
    if name.startswith("tstl"):
        tracks = int(setup.disk.facts["cylinders"]) * int(setup.disk.facts["surfaces"])
        return tracks * ENTRY_BYTES / 1e6
    if name == "is":
        s_blocks = setup.disk.size_bytes // (2000 * 512)
        return float(setup.e_region // 512 + s_blocks) * ENTRY_BYTES / 1e6
    return 0.0


def over_hdd(name: str, size: str) -> float | None:
    """Response over the HDD's: the geometric mean over the workloads that saturate no disk."""
    some = [row for row in rows_of("thesis-fig53") if row["used"] == size and not row["saturated"] and name in row]
    return geometric_mean(row[name] / row["hdd"] for row in some) if some else None


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), 1, 100)
    setup = cheetah_setup()
    load = Load("uniform", "uniform,arrivals=fixed:50", requests=given.requests)
    compared = {**schemes(*NAMES), COLD: Scheme("tstl-smart", {"alternate_limit": 0.0})}
    ((_, found),) = run_cases([Case({}, setup, compared, used(30 * GB // 512, "30 GB"), load)])
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        figures = {f"over hdd at {size}": over_hdd(name, size) for size in SIZES}
        rows.append(
            {
                "scheme": name,
                "type": KINDS[name][0],
                "band, tracks": KINDS[name][1],
                "capacity GB": found[name].mean(lambda report: report["capacity_blocks"] * 512 / GB),
                "tables MB": metadata_mb(name, setup),
                **{key: value for key, value in figures.items() if value is not None},
                "published": {"capacity GB": PUBLISHED_GB[name]} if name in PUBLISHED_GB else {},
            }
        )
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "column_label": "simulated",
            "unit": "as the columns say",
            "over hdd at": "mean response over the HDD's, geometric mean over thesis-fig53 without saturated disks",
            "tables MB": "tables in memory, counted as the thesis does: 8 bytes a track, E-region block or S-block",
            "published": "table 5.1",
            "options": given.as_json,
        },
    )
    bars = {str(each["scheme"]): [each.get(f"over hdd at {size}", 0.0) for size in SIZES] for each in rows}
    draw_groups(
        given.out / "result.svg", "Schemes over the HDD (thesis, table 5.3), simulated",
        "mean response over the HDD's", [("by space in use", SIZES, bars)],
    )  # fmt: skip


if __name__ == "__main__":
    finish_with_data(main)
