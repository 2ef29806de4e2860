"""PDLA paper, figure 10: IOR of 128 to 512 processes, three sizes in parts of a file. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import STRIDE, Part, Place, Stated, run_figure, strided

SIZES = (16 * KIB, 256 * KIB, 4 * MIB)
#: An eighth of the paper's 512 MB, in three parts of whole requests.
PER_PART = 20 * MIB
PROCESSES = (128, 256, 512)
SEEDS, REQUESTS = 1, 512
#: Section 5.2.1.
STATED = (
    Stated("h-read", "s-pdla", "h-pdla", "read", 1.28, 1.83),
    Stated("h-write", "s-pdla", "h-pdla", "write", 2.52, 2.79),
    Stated("orig-read", "s-pdla", "s-orig", "read", None, 0.86),
    Stated("orig-write", "s-pdla", "s-orig", "write", None, 0.98),
)


def parts(processes: int) -> tuple[Part, ...]:
    """One part of the file for each size, one behind the other."""
    found: list[Part] = []
    for size in SIZES:
        base = int(found[-1].offset.max()) + found[-1].request_bytes * STRIDE if found else 0
        found.append(strided(processes, size, PER_PART, base))
    return tuple(found)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [Place(f"{p}", {"processes": p}, parts(p), given.requests) for p in PROCESSES]
    title = "IOR, three request sizes (PDLA, figure 10), simulated"
    run_figure(given, title, "processes", places, ("h-pdla", "s-orig", "ns-pdla", "s-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
