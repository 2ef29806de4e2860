"""What PDLA's gains come from: one condition of the servers, or of the requests, changed at a time. Simulated."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import KIB, MIB, arguments, finish, home_of
from pdla import Conditions, Part, Place, nested, run_figure, strided

PROCESSES = 64
SEEDS, REQUESTS = 2, 256
PLAIN = Conditions()
#: A server's cache that writes what goes on together, in pieces of a disk's read-ahead.
CACHED = Conditions(write_behind_bytes=128 * KIB)
SCHEMES = ("original", "pd", "pd-file", "h-pdla")


def ior(size: int, stride: int = 2) -> Part:
    """As in figure 7, a quarter of its data."""
    return strided(PROCESSES, size, 128 * MIB, stride=stride)


#: Name, what is changed, requests, conditions.
CASES = (
    ("IOR 16 KiB", "nothing", ior(16 * KIB), PLAIN),
    ("IOR 16 KiB", "no read-ahead", ior(16 * KIB), Conditions(has_read_ahead=False)),
    ("IOR 16 KiB", "writes gathered", ior(16 * KIB), CACHED),
    ("IOR 256 KiB", "nothing", ior(256 * KIB), PLAIN),
    ("IOR 256 KiB", "no read-ahead", ior(256 * KIB), Conditions(has_read_ahead=False)),
    ("IOR 256 KiB", "stride of 3 requests", ior(256 * KIB, 3), PLAIN),
    ("IOR 256 KiB", "no arm, 12.7 ms each", ior(256 * KIB), Conditions(has_arm=False)),
    ("IOR 256 KiB", "no arm, 1 ms each", ior(256 * KIB), Conditions(has_arm=False, startup_s=0.001)),
    ("PIO 64 KiB", "nothing", nested(PROCESSES, 64 * KIB, 32 * MIB), PLAIN),
    ("PIO 64 KiB", "no read-ahead", nested(PROCESSES, 64 * KIB, 32 * MIB), Conditions(has_read_ahead=False)),
    ("PIO 64 KiB", "startups always paid", nested(PROCESSES, 64 * KIB, 32 * MIB), Conditions(sequential_discount=0.0)),
    ("PIO 4 KiB", "nothing", nested(PROCESSES, 4 * KIB, 32 * MIB), PLAIN),
    ("PIO 4 KiB", "writes gathered", nested(PROCESSES, 4 * KIB, 32 * MIB), CACHED),
)


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, REQUESTS)
    places = [
        Place(f"{name}\n{change}", {"requests": name, "changed": change}, (part,), given.requests, conditions)
        for name, change, part, conditions in CASES
    ]
    run_figure(given, "What PDLA's gains come from, simulated", "requests, and what is changed", places, SCHEMES)


if __name__ == "__main__":
    finish(main)
