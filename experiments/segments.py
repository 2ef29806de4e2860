"""What the figures of the segment paper share: its servers, networks, segments, and the stripes that are compared.

A segment is a file of its own, as in the paper, and is run by itself; a bandwidth is all bytes over all time. All
is scaled alike: --requests are those of a process on the first segment, the others follow by their sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from common import (
    KIB,
    MEANINGS,
    MIB,
    Contender,
    Given,
    Point,
    Series,
    contenders,
    figures,
    gain,
    run_points,
    shown,
    write_result,
)
from pictures import draw_bars
from stripewise.cluster import Cluster, Network, read_cluster
from stripewise.simulate.sweep import changed_cluster
from stripewise.units import format_size

HOME = Path(__file__).resolve().parent / "papers"
WORKLOAD = HOME / "segment-ior.toml"
#: Section VI.A: "8 nodes are configured as I/O servers".
SERVERS = 8
#: Seconds per byte; InfiniBand (4X: 1 GB/s) is many times as fast as the disks, so it is left out.
NETWORKS = {"Ethernet": 8e-9, "InfiniBand": 0.0}
STRIPES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)


@dataclass(frozen=True)
class Segment:
    """A part of the file: its size and how it is accessed, with unused bytes between requests."""

    size_bytes: int
    request_bytes: int
    gap_bytes: int = 0
    kind: str = "sequential"


def papers_cluster(network: str) -> Cluster:
    """Eight servers behind that network; every process is on a node of its own."""
    cluster = changed_cluster(read_cluster(HOME / "segment.toml"), {"hservers": SERVERS})
    return replace(cluster, network=Network(0.0, NETWORKS[network], 1))


def phases(segments: Sequence[Segment], processes: int, requests: int, operation: str) -> tuple[Mapping[str, Any], ...]:
    """The segments one after another; the first one with so many requests per process, the others in proportion."""
    scale = requests * processes * segments[0].request_bytes / segments[0].size_bytes
    made = []
    for segment in segments:
        each = max(1, round(segment.size_bytes * scale / segment.request_bytes / processes))
        made.append(
            {
                "processes": processes,
                "kind": segment.kind,
                "request_bytes": segment.request_bytes,
                "gap_bytes": segment.gap_bytes,
                "file_bytes": each * processes * (segment.request_bytes + segment.gap_bytes),
                "reads": each if operation == "read" else 0,
                "writes": each if operation == "write" else 0,
            }
        )
    return tuple(made)


def compared() -> tuple[Contender, ...]:
    """Fixed stripes for the whole file, the paper's layout (SLAL), and `best` where it is there."""
    fixed = tuple(Contender(short(size), "def", {"stripe_bytes": size}) for size in STRIPES)
    return (*fixed, *contenders(("slal", "best")))


def short(size: int) -> str:
    """The paper's 4K, 64K, 1M."""
    return format_size(size).replace(".0 ", "").replace("iB", "")


def unevenness(series: Series) -> float:
    """The busiest server over the mean one, less 1, the mean over the seeds."""
    return fmean(max(run.hdd_busy_s) / fmean(run.hdd_busy_s) - 1 for run in series.runs)


def run_layouts(
    given: Given,
    title: str,
    places: Sequence[tuple[str, Mapping[str, Any], Cluster, tuple[Mapping[str, Any], ...]]],
    published: Mapping[str, tuple[float, float]],
) -> None:
    """Runs (tick, keys of the row, cluster, phases) each under every layout, writes result.json and result.svg.

    `published` are the least and the largest gain of the paper's layout over a fixed stripe, by operation.
    """
    who = compared()
    names = [each.label for each in who]
    fixed = [short(size) for size in STRIPES]
    points = [Point(WORKLOAD, cluster, who, {}, each) for _, _, cluster, each in places]
    rows: list[dict[str, Any]] = []
    for (tick, keys, _, _), series in zip(places, run_points(points, given.seeds), strict=True):
        gains = [gain(series["slal"].mb_s, series[name].mb_s) for name in fixed]
        said = published.get(str(keys.get("operation")), ())
        rows.append(
            {
                **keys,
                **figures(series),
                "slal_gain": {"least": min(gains), "largest": max(gains)},
                "published_slal_gain": dict(zip(("least", "largest"), said, strict=False)),
                "imbalance": {name: unevenness(each) for name, each in series.items()},
            }
        )
        shown(tick, rows[-1], names)
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "slal_gain": "MB/s of SLAL over that of each fixed stripe, less 1: the least and the largest",
            "published_slal_gain": "the same as the paper states it, of both networks together",
            "imbalance": "busiest server's time over the mean one's, less 1, all segments together",
            "options": given.as_json,
        },
    )
    lines = {name: [row[name] for row in rows] for name in names}
    draw_bars(given.out / "result.svg", title, "", [tick for tick, _, _, _ in places], [("", lines)])


def run_on_networks(
    given: Given, title: str, segments: Sequence[Segment], processes: int, published: Mapping[str, tuple[float, float]]
) -> None:
    """`run_layouts` behind every network and for every published operation: a figure of the paper's IOR runs."""
    places = [
        (
            f"{network}, {operation}",
            {"network": network, "operation": operation},
            papers_cluster(network),
            phases(segments, processes, given.requests, operation),
        )
        for network in NETWORKS
        for operation in published
    ]
    run_layouts(given, title, places, published)
