"""Where `best` does not keep its promises, and why: the page of results tells it, the tests allow nothing else.

The promises: no policy ahead of it in the simulator, none in real-emulated runs beyond the 95 % interval; at least
RATIO_MIN of the proven bound in runs with MANY processes per server; a gap of the optimiser of at most GAP_MAX.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proof import MANY

HOME = Path(__file__).resolve().parent
GAP_MAX, RATIO_MIN, GAP_VOID = 0.05, 0.90, 10.0
#: By experiment and promise (behind, emulated, ratio, gap): the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("scale", "gap"): (
        "With 4,096 servers single places of 1 MiB are what is dealt out, tens of thousands of them, and an SServer "
        "has room for five: what is indivisible does not fill all rooms, and the bound is that of divisible regions."
    ),
}


def place_of(row: Mapping[str, Any]) -> str:
    """The row's place on its axis, in words."""
    keys = [f"{key.replace('_', ' ')} {value}" for key, value in row.items() if isinstance(value, str | int)]
    shares = [f"{key.replace('_', ' ')} {row[key]:g}" for key in ("ssd_share", "factor") if key in row]
    told = [each for each in (*keys, *shares) if not each.startswith("bound of")]
    return ", ".join(dict.fromkeys(told))


def shown_gap(gap: float) -> str:
    """The gap in words; beyond GAP_VOID the bound says nothing."""
    return f"gap {gap:.1%}" if gap <= GAP_VOID else "nothing proven"


def broken(row: Mapping[str, Any]) -> dict[str, str]:
    """The promises that a row breaks: by how much."""
    found = {}
    ahead = ", ".join(f"{name} is ahead by {share:.1%}" for name, share in row.get("best_behind", {}).items())
    if ahead:
        found["behind"] = ahead
    proof = row.get("proof", {})
    if proof.get("gap", 0.0) > GAP_MAX:
        found["gap"] = shown_gap(proof["gap"])
    for each in (proof, row.get("many", {})):
        if each.get("processes_per_server", 0) >= MANY and each.get("ratio", 1.0) < RATIO_MIN:
            found["ratio"] = f"{each['ratio']:.2f} of the proven bound with {each['processes_per_server']:g} per server"
    return found


def all_broken() -> list[tuple[str, str, str, str]]:
    """(experiment, promise, place, by how much) of every result file."""
    found = []
    for file in sorted(HOME.glob("*/result.json")):
        for row in json.loads(file.read_text())["rows"]:
            found += [(file.parent.name, promise, place_of(row), said) for promise, said in broken(row).items()]
    for file in sorted(HOME.glob("*/emulated.json")):
        for row in json.loads(file.read_text())["rows"]:
            if row["best_behind"]:
                found.append((file.parent.name, "emulated", place_of(row), f"behind {', '.join(row['best_behind'])}"))
    return found
