"""Keeps what came out of the matrix in `target/matrix/`, one file per layout; tools/compatibility.py reads it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rig import ROOT

from .engine import Outcome

RECORDS = ROOT / "target" / "matrix"


def record_path(layout: str, size: str) -> Path:
    """Where the outcomes of one run of one layout are."""
    return RECORDS / f"{size}-{layout}.json"


def write_record(layout: str, size: str, outcomes: list[Outcome], known: set[str]) -> None:
    """Outcomes of a part of the cases replace theirs and keep the others that are still `known`."""
    path = record_path(layout, size)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {entry["case"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
    kept |= {outcome.case: asdict(outcome) for outcome in outcomes}
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps([entry for name, entry in kept.items() if name in known], indent=1))
    beside.rename(path)
