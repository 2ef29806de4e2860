"""PDLA paper, figure 6: IOR of 8 to 512 processes, requests of 256 KB at a fixed stride. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Place, Stated, run_figure, strided

REQUEST, PER_PROCESS = 256 * KIB, 512 * MIB
PROCESSES = (8, 32, 128, 512)
SEEDS, REQUESTS = 2, 128
#: Section 5.1.1.
STATED = (
    Stated("pd-read", "pd", "original", "read", None, 9.7),
    Stated("pd-write", "pd", "original", "write", None, 3.07),
    Stated("la-read", "h-pdla", "pd", "read", None, 0.1),
    Stated("la-write", "h-pdla", "pd", "write", None, 0.05),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [Place(f"{p}", {"processes": p}, (strided(p, REQUEST, PER_PROCESS),), given.requests) for p in PROCESSES]
    title = "IOR, processes (PDLA, figure 6), simulated"
    run_figure(given, title, "processes", places, ("original", "pd", "h-pdla"), STATED)


if __name__ == "__main__":
    finish(main)
