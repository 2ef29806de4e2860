"""The mechanics beside the means that DiskSim 4.0 publishes for two drives. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import random
import tempfile
from typing import Any

from common import arguments, home_of, write_result
from shingled import Case, Load, Outcome, drive, finish_with_data, run_cases, schemes, told, used, with_facts
from shingled_pictures import draw_groups
from stripewise.swd.disk import Disk
from stripewise.swd.simulate import Setup

SEEDS, REQUESTS = 3, 100_000
KEYS = ("response", "seek", "rotation", "transfer")
BLOCKS = 8
#: Drive, mean between arrivals (ms), alignment of requests (blocks), DiskSim's means (ms).
DRIVES = (
    ("cheetah15k5", 12.0, 1, (8.283, 3.69, 1.91, 0.056)),
    ("hp_c3323a", 35.0, 8, (29.2, 8.55, 5.54, 0.83)),
)


def setup_of(name: str) -> Setup:
    """The drive as DiskSim sets it up for these means: no cache, no skew that its file does not give, a bus."""
    disk = drive(name)
    if name == "cheetah15k5":
        return Setup(with_facts(disk, disk.name, skew="none"), queue="sptf", queue_depth=8)
    return Setup(with_facts(disk, disk.name, bus_block_ms=0.0512), queue="fcfs", queue_depth=1)


def write_requests(path: Path, disk: Disk, mean_ms: float, align: int, count: int, seed: int) -> None:
    """Uniformly random requests of 4 KiB, half of them reads, Poisson arrivals, as a DiskSim trace."""
    drawn, at_ms = random.Random(seed), 0.0
    places = (int(disk.facts["blocks"]) - BLOCKS) // align + 1
    with path.open("w") as file:
        for _ in range(count):
            at_ms += drawn.expovariate(1 / mean_ms)
            file.write(f"{at_ms:.6f} 0 {drawn.randrange(places) * align} {BLOCKS} {drawn.getrandbits(1)}\n")


def means(outcome: Outcome) -> dict[str, float]:
    """ms per request."""
    found = {"response": outcome.mean(lambda report: report["response_s"]["mean"] * 1e3)}
    for key in KEYS[1:]:
        found[key] = outcome.mean(
            lambda report, key=key: report["accounts"]["own"][f"{key}_s"] / report["requests"] * 1e3  # type: ignore[misc]
        )
    return found


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, mean_ms, align, published in DRIVES:
            setup, cases = setup_of(name), []
            for seed in range(1, given.seeds + 1):
                path = Path(folder) / f"{name}-{seed}.trace"
                write_requests(path, setup.disk, mean_ms, align, given.requests, seed)
                fill = used(int(setup.disk.facts["blocks"]), "all")
                cases.append(Case({}, setup, schemes("hdd"), fill, Load(name, trace=str(path))))
            reports = tuple(found["hdd"].reports[0] for _, found in run_cases(cases))
            ours = means(Outcome(reports))
            rows.append(
                {
                    "drive": name,
                    **ours,
                    "published": dict(zip(KEYS, published, strict=True)),
                    "off_published": {key: ours[key] / value - 1 for key, value in zip(KEYS, published, strict=True)},
                }
            )
            told(rows[-1], KEYS)
    write_result(
        given.out,
        {
            "rows": rows,
            "simulated": True,
            "unit": "ms, mean over all requests",
            "column_label": "ms, simulated",
            "published": "DiskSim 4.0's means of these drives, ms",
            "off_published": "ours over published, less 1",
            "options": given.as_json,
        },
    )
    panels = [
        (str(each["drive"]), KEYS, {"ours": [each[key] for key in KEYS], "DiskSim": list(each["published"].values())})
        for each in rows
    ]
    draw_groups(given.out / "result.svg", "Random requests of 4 KiB, simulated", "ms, mean", panels)


if __name__ == "__main__":
    finish_with_data(main)
