"""Holds the simulator against real runs on emulated devices: `make validate`.

Every point is a workload on a layout: mpiio under the preloaded library on four emulated hard disks and two emulated
SSDs, and the same description simulated with the same plan. The ratio of both bandwidths is the median of --repeat
runs, for the machine has other work too. A point that is off by more than --tolerance fails the tool. Those of the
second list are told but do not count, each for the reason that stands there; docs/simulator.md says what follows from
it for users. tools/validate_table.py makes the table of that page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from emulated_bench import ROOT
from validate_run import DEVICES, Bench, Point

from stripewise.errors import StripewiseError, UsageError
from stripewise.units import KIB, MIB

POINTS = [
    Point("zipf", "read", 64 * KIB, 8, "def"),
    Point("zipf", "read", 256 * KIB, 8, "def"),
    Point("zipf", "read", 256 * KIB, 8, "h2dp"),
    Point("zipf", "read", 64 * KIB, 16, "h2dp"),
    Point("zipf", "write", 256 * KIB, 8, "h2dp"),
    Point("zipf", "write", 128 * KIB, 12, "padp"),
    Point("zipf", "read", 64 * KIB, 8, "padp"),
    Point("zipf", "read", 256 * KIB, 16, "psa"),
    Point("zipf", "read", 256 * KIB, 8, "user"),
    Point("random", "read", 64 * KIB, 8, "def"),
    Point("random", "read", 1 * MIB, 8, "def"),
    Point("random", "write", 256 * KIB, 16, "def"),
    Point("random", "read", 128 * KIB, 8, "slal"),
    Point("random", "write", 512 * KIB, 8, "padp"),
    Point("random", "read", 256 * KIB, 4, "psa"),
    Point("sequential", "read", 64 * KIB, 8, "def"),
    Point("sequential", "read", 256 * KIB, 8, "padp"),
    Point("sequential", "write", 256 * KIB, 8, "h2dp"),
    Point("sequential", "read", 256 * KIB, 4, "slal"),
    Point("interleaved", "read", 64 * KIB, 8, "def"),
    Point("interleaved", "write", 256 * KIB, 8, "def"),
    Point("zipf", "read", 256 * KIB, 8, "def", traced=True),
    Point("zipf", "write", 256 * KIB, 8, "h2dp", traced=True),
]
#: Told beside two other simulations, but no failure; and why.
TOLD = {
    Point("interleaved", "read", 256 * KIB, 16, "slal"): (
        "each server holds a sequence that all processes share; simulated, they keep their order for ever and startups "
        "vanish, while real ones overtake each other and pay for nearly every access"
    ),
}


def cells(row: Mapping[str, Any]) -> str:
    """One line of the table."""
    return (
        f"{row['point']:<38} {row['measured_mb_s']:>8.2f} {row['simulated_mb_s']:>8.2f} {row['ratio']:>6.3f} "
        f"{row['measured_busy_s'] / row['simulated_busy_s']:>6.3f} "
        f"{row['measured_startups']:>7,} {row['simulated_startups']:>7,} "
        f"{row['measured_utilisation']:>6.2f} {row['simulated_utilisation']:>6.2f}  "
        f"{' '.join(f'{each:.3f}' for each in row['ratios'])}"
    )


def measured(bench: Bench, points: list[Point], seconds: float, repeat: int) -> Iterator[dict[str, Any]]:
    """Runs the points, telling each as it comes."""
    print(
        "measured on emulated devices, and simulated; busy: ratio of the devices' service time; "
        "startups and the busiest device's utilisation, measured and simulated; ratio of every run"
    )
    print(f"{'point':<38} {'measured':>8} {'simulat.':>8} {'ratio':>6} {'busy':>6} {'startups':>15} {'utilisat.':>13}")
    for point in points:
        row = {**bench.point(point, seconds, repeat), "counts": point not in TOLD}
        print(cells(row), flush=True)
        if point in TOLD:
            row["reason"] = TOLD[point]
            print(f"  told, does not count: {TOLD[point]}")
            for name, mb_s in row["beside"].items():
                print(f"  simulated with {name}: {mb_s:.2f}, ratio {row['measured_mb_s'] / mb_s:.3f}")
        yield row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="only points whose name contains this; repeatable")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a run, simulated")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each point, of which the median counts")
    parser.add_argument("--tolerance", type=float, default=0.05, help="how far a bandwidth may be off")
    parser.add_argument("--file-mib", type=int, default=256, help="size of the file")
    parser.add_argument("--json", type=Path, default=ROOT / "target/validate.json")
    given = parser.parse_args()
    wanted = [each for each in (*POINTS, *TOLD) if not given.only or any(part in each.name for part in given.only)]
    if not wanted or given.repeat < 1 or given.seconds <= 0 or given.file_mib < 1:
        raise UsageError("nothing to run: --only fits no point, or --repeat, --seconds or --file-mib is not above 0")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stripewise-validate-", ignore_cleanup_errors=True) as scratch:
        bench = Bench(Path(scratch).resolve(), given.file_mib * MIB)
        rows = list(measured(bench, wanted, given.seconds, given.repeat))
    counting = [row for row in rows if row["counts"]]
    off = [row["point"] for row in counting if abs(row["ratio"] - 1) > given.tolerance]
    report = {
        "emulated": True, "tolerance": given.tolerance, "repeat": given.repeat, "seconds": given.seconds,
        "devices": DEVICES, "off": off, "points": rows,
    }  # fmt: skip
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(report, indent=1) + "\n")
    verdict = f"{len(counting) - len(off)} of {len(counting)} points within {given.tolerance:.0%}"
    if counting:
        worst = max(counting, key=lambda row: abs(row["ratio"] - 1))
        verdict += f", worst {worst['point']} at {worst['ratio'] - 1:+.1%}"
    told = f"{len(rows) - len(counting)} more told; " if len(rows) > len(counting) else ""
    print(f"validate: {verdict}; {told}{time.monotonic() - begun:.0f} s; {given.json}")
    return 1 if off else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StripewiseError as error:
        sys.exit(f"validate_simulator: {error}")
