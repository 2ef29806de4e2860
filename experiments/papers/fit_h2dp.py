"""Fits the device figures that the H2DP paper does not print: one set, to six numbers that it does print.

The numbers are figure 8 at 12 HServers and 4 SServers (section 5.2.1): by how much H2DP outperforms DEF, PADP and PSA,
reads and writes, 512 KB, 32 processes. Only ratios are printed; what gives them a unit is the network, Gigabit
Ethernet, as the paper says. Prints the sets by their errors, the root mean squares of the
logarithms of ratios; the best one is what papers/h2dp.toml holds.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import Point, contenders, finish, run_points
from h2dp import WORKLOAD, papers_cluster
from stripewise.cluster import Cluster, Network

#: Figure 8, 12H4S.
READS = {"def": 1.43, "padp": 0.71, "psa": 0.34}
WRITES = {"def": 1.73, "padp": 0.74, "psa": 0.38}
#: HDD startup, HDD MB/s, SSD startup, SSD read MB/s; Gbit/s (0: no network).
GRID = ((0.0001, 0.0003, 0.001, 0.003), (10, 20, 30, 60), (0.00005,), (250, 500), (1,))


def cluster_of(hdd_s: float, hdd_mb_s: float, ssd_s: float, ssd_mb_s: float, gbit: float) -> Cluster:
    """The cluster with these figures, the same for reads and writes."""
    cluster = papers_cluster()
    figures = {True: (ssd_s, 1e-6 / ssd_mb_s), False: (hdd_s, 1e-6 / hdd_mb_s)}
    targets = tuple(
        replace(
            target,
            startup_read_s=figures[target.is_ssd][0],
            startup_write_s=figures[target.is_ssd][0],
            per_byte_read_s=figures[target.is_ssd][1],
            per_byte_write_s=figures[target.is_ssd][1],
        )
        for target in cluster.targets
    )
    return replace(cluster, network=Network(0.0, 8e-9 / gbit if gbit else 0.0, 1), targets=targets)


def main() -> None:
    tried = list(itertools.product(*GRID))
    compared = contenders(("def", "padp", "psa", "h2dp"))
    points = [Point(WORKLOAD, cluster_of(*each), compared, {"reads": 500}) for each in tried]
    found = []
    for each, series in zip(tried, run_points(points, 1), strict=True):
        over = {name: series["h2dp"].mb_s / series[name].mb_s for name in READS}
        errors = [
            math.sqrt(fmean(math.log(over[name] / (1 + value)) ** 2 for name, value in wanted.items()))
            for wanted in (READS, WRITES)
        ]
        found.append((errors, each, {name: round(ratio - 1, 2) for name, ratio in over.items()}))
    print("error of reads, of writes  hdd_s hdd_mb_s ssd_s ssd_mb_s gbit  H2DP over")
    for (reads, writes), each, over in sorted(found, key=lambda row: sum(row[0])):
        print(f"{reads:.3f} {writes:.3f}", *each, over)


if __name__ == "__main__":
    finish(main)
