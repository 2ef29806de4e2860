"""The adaptive policy of T-STL beside the thesis's two: response, WAR, stalls by workload and fill. Simulated.

Each T-STL runs on demand only, and with an idle disk that collects; so what comes from idle time and what from the
placement of tracks is told apart. Fills are shares of what T-STL has; R(4123) has a fifth less and is used to the same
bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from common import arguments, finish, home_of, progress, write_result
from pictures import draw_lines
from stripewise.errors import UsageError
from stripewise.swd.disk import read_disk
from stripewise.swd.simulate import Fill, Scheme, Setup, simulate_disk
from stripewise.swd.workload import BlockWorkload, made_workload

DISK = Path(__file__).resolve().parents[3] / "shared" / "data" / "disks" / "cheetah15k5.toml"
BLOCK_BYTES, RANDOM_ACCESS_BYTES = 512, 2_000_000_000
SEEDS, REQUESTS = 1, 40_000
#: Requests before those that are counted, of each that is: until copies and collection are steady.
WARM = 2
FILLS = (30, 50, 75, 90, 95)
#: An idle disk begins after so long, and stops when it is asked.
IDLE_AFTER_MS = 20.0
NAMES = ("hdd", "R(4123)", "tstl-greedy", "tstl-smart", "tstl-adaptive")
IDLE = ("tstl-greedy", "tstl-smart", "tstl-adaptive")
#: The part of the drive's cylinders that the generators write to: few enough that its tracks are written often.
PART = 10
#: Words of a workload, stretch, part of the drive.
LOADS = {
    "uniform": ("uniform,write_share=1", 40.0, PART),
    "zipf 0.8": ("zipf,alpha=0.8,write_share=1", 40.0, PART),
    "zipf 1.2": ("zipf,alpha=1.2,write_share=1", 40.0, PART),
    "SYN over old data": ("syn,again=true", 10.0, PART),
    **{f"{name} look-alike": (f"look-alike:{name}", 10.0, 1) for name in ("mds_0", "usr_0", "stg_0", "web_1")},
}
DRAWN = ("uniform", "zipf 1.2", "mds_0 look-alike", "usr_0 look-alike")


def drive(part: int) -> Setup:
    """The drive, or the outer cylinders of each of its zones. Raises UsageError where its file is not there."""
    if not DISK.is_file():
        raise UsageError(f"../shared/data/disks/{DISK.name} is not there; put the shared data beside the checkout")
    disk = read_disk(DISK)
    if part > 1:
        facts = {key: value for key, value in disk.facts.items() if key != "blocks"}
        cylinders = facts["cylinders"] // part
        zones = {first // part: sectors for first, sectors in reversed(facts["zones"])}
        zones = {first: sectors for first, sectors in zones.items() if first < cylinders}
        facts |= {"cylinders": cylinders, "zones": [list(zone) for zone in sorted(zones.items())]}
        disk = replace(disk, name=f"{disk.name}, 1/{part}", facts=facts)
    return Setup(disk, RANDOM_ACCESS_BYTES // part)


def column(name: str, idle: bool) -> str:
    """The scheme's name in rows and pictures."""
    return f"{name}, idle time" if idle else name


def workload(name: str, requests: int, seed: int) -> BlockWorkload:
    """The requests, those that warm up first."""
    words, stretch, _ = LOADS[name]
    return made_workload(words, requests=(1 + WARM) * requests, stretch=stretch, seed=seed)


def capacity_bytes(setup: Setup, name: str) -> int:
    """What a scheme offers on the disk."""
    little = replace(setup, filled=0.0, warm_requests=0)
    report = simulate_disk(little, Scheme(name), Fill("all", share=1.0), made_workload("uniform", requests=1))
    return int(report["capacity_blocks"]) * BLOCK_BYTES


def mean(reports: Sequence[Mapping[str, Any]], *path: str) -> float:
    """A figure of the reports, the mean over the seeds."""
    values = []
    for report in reports:
        value: Any = report
        for key in path:
            value = value[key]
        values.append(float(value))
    return sum(values) / len(values)


def made_row(name: str, fill: int, found: Mapping[str, list[Mapping[str, Any]]]) -> dict[str, Any]:
    """Mean response, ms, by scheme; the others are nested."""

    def by_scheme(*path: str, scale: float = 1.0) -> dict[str, float]:
        return {each: scale * mean(reports, *path) for each, reports in found.items()}

    def by_request(part: str) -> dict[str, float]:
        per = {each: 1e3 / mean(reports, "requests") for each, reports in found.items()}
        return {each: per[each] * mean(reports, "write_time", part) for each, reports in found.items()}

    return {
        "workload": name,
        "used": f"{fill} %",
        **by_scheme("response_s", "mean", scale=1e3),
        "p99_ms": by_scheme("response_s", "p99", scale=1e3),
        "longest_ms": by_scheme("stalls", "longest_s", scale=1e3),
        "war": by_scheme("amplification"),
        "utilisation": by_scheme("utilisation"),
        "collection_ms": by_request("collection_s"),
        "upkeep_ms": by_request("upkeep_s"),
    }


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    setups = {part: replace(drive(part), warm_requests=WARM * given.requests) for _, _, part in LOADS.values()}
    capacities = {
        part: {name: capacity_bytes(setup, name) for name in ("tstl-smart", "R(4123)")}
        for part, setup in setups.items()
    }
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waited = {}
        for name, fill in ((name, fill) for name in LOADS for fill in FILLS):
            setup, has = setups[LOADS[name][2]], capacities[LOADS[name][2]]
            used_bytes = has["tstl-smart"] * fill // 100
            used = Fill(f"{fill} %", used_bytes=used_bytes)
            runs = [(each, False) for each in NAMES if used_bytes <= has.get(each, used_bytes)]
            waited[name, fill] = {
                column(each, idle): [
                    pool.submit(
                        simulate_disk,
                        replace(setup, background_after_ms=IDLE_AFTER_MS if idle else None),
                        Scheme(each),
                        used,
                        workload(name, given.requests, seed),
                    )
                    for seed in range(1, given.seeds + 1)
                ]
                for each, idle in [*runs, *((each, True) for each in IDLE)]
            }
        for (name, fill), futures in waited.items():
            found = {each: [future.result() for future in some] for each, some in futures.items()}
            rows.append(made_row(name, fill, found))
            figures = ", ".join(f"{each} {rows[-1][each]:.2f}" for each in found)
            progress(f"{name}, {fill} %: {figures} ms, simulated")
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "unit": "ms, mean response time over all requests, mean over the seeds",
            "column_label": "ms, simulated",
            "p99_ms": "99 of 100 requests are done within",
            "longest_ms": "the longest that a request waited",
            "war": "requests that writing took over those that a plain disk would have made",
            "utilisation": "share of the time in which the disk was busy, idle work included",
            "collection_ms": "of the mean response: collection on demand; what idle time can win at best",
            "upkeep_ms": "of the mean response: checkpoints and declared pools",
            "idle time": f"collection begins when nobody has asked for {IDLE_AFTER_MS:.0f} ms",
            "options": given.as_json,
        },
    )
    panels = []
    for name in DRAWN:
        some = [each for each in rows if each["workload"] == name]
        columns = [each for each in (*NAMES, *(column(name, True) for name in IDLE)) if each in some[-1]]
        panels.append((name, {each: [row[each] for row in some] for each in columns}))
    draw_lines(
        given.out / "result.svg", "Adaptive T-STL, simulated", "used, % of what T-STL has",
        [str(fill) for fill in FILLS], panels, unit="mean response, ms", log=True,
    )  # fmt: skip


if __name__ == "__main__":
    finish(main)
