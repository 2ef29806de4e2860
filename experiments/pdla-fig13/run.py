"""PDLA paper, figure 13: a replay of the accesses of "Anonymous LANL App 2", four schemes with SSDs. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Part, Place, alternating, run_figure, strided

#: Section 5.2.4 has "several KBs", "tens of KBs", and two sizes of "hundreds of KBs" in turns; figures are ours.
SMALL, MEDIUM, LARGE = 4 * KIB, 32 * KIB, (128 * KIB, 256 * KIB)
PROCESSES = (8, 32, 128)
#: Of each process in each part.
PER_PROCESS = 24 * MIB
SEEDS, REQUESTS = 1, 1024


def parts(processes: int) -> tuple[Part, ...]:
    """The three parts of the file, each process through all of them."""
    small = strided(processes, SMALL, PER_PROCESS)
    medium = strided(processes, MEDIUM, PER_PROCESS, base=small.end)
    return small, medium, alternating(processes, LARGE, PER_PROCESS, medium.end)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [Place(str(p), {"processes": p}, parts(p), given.requests) for p in PROCESSES]
    title = "Accesses as of LANL App 2, schemes with SSDs (PDLA, figure 13), simulated"
    run_figure(given, title, "processes", places, ("h-pdla", "s-orig", "ns-pdla", "s-pdla"))


if __name__ == "__main__":
    finish(main)
