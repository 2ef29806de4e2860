"""Where S-PDLA puts requests of 4 MB, by the disks' startup: the choice in PDLA, section 5.2.1. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import MIB, arguments, finish, home_of
from pdla import Conditions, Place, run_figure, strided

PROCESSES, REQUEST, PER_PROCESS = 128, 4 * MIB, 128 * MIB
#: Milliseconds of every access to a disk; the first is a disk's mean one.
STARTUPS = (12.67, 6.0, 3.0, 2.0, 1.0, 0.1)
SEEDS, REQUESTS = 1, 16
SCHEMES = ("h-pdla", "s-orig", "ns-pdla", "s-pdla")


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    part = strided(PROCESSES, REQUEST, PER_PROCESS)
    places = [
        Place(
            f"{ms:g}", {"startup_ms": f"{ms:g}"}, (part,), given.requests, Conditions(has_arm=False, startup_s=ms / 1e3)
        )
        for ms in STARTUPS
    ]
    title = "IOR of 128 processes, 4 MB, by the startup of disks, simulated"
    run_figure(given, title, "startup of disks, ms", places, SCHEMES)


if __name__ == "__main__":
    finish(main)
