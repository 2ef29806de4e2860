"""Paths of which some files are by symbolic patterns and the others by statistics (ours; docs/traces/pioneer.md).

Statistics go by the characteristics of the files that patterns do not cover, with sequence ids of the whole run; the
patterns' requests fill the holes (crates/pioneer/src/synthesis/weave.rs).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import native
from ...errors import WorkloadError, naming
from ...files.fields import Fields
from ..characterization.profile_reader import profile_of

#: Requests of a traced run, at most.
_REQUESTS_MAX = 1 << 48


def has_uncovered(programs: Any) -> bool:
    """Whether patterns leave files to statistics."""
    return isinstance(programs, Mapping) and "uncovered" in programs


def uncovered_of(data: Mapping[str, Any], source: str) -> tuple[int, dict[str, Any]]:
    """Requests of the traced run's sequence, and the profile (as JSON with all keys) of the files that the patterns of
    the profile `data` do not cover. Raises WorkloadError naming `source` and the key.
    """
    given = Fields(data["programs"], source, "programs.", WorkloadError).table("uncovered")
    fields = Fields(given, source, "programs.uncovered.", WorkloadError)
    fields.only({"requests", "classes"})
    requests = fields.integer("requests", 0, _REQUESTS_MAX)
    kept = {key: data[key] for key in ("processes", "apart", "together", "subgroups")}
    part = {"version": 1, **kept, "classes": fields.table("classes")}
    return requests, profile_of(part, f"{source}: programs.uncovered").as_json()


def write_mixture(
    patterns: Path, uncovered: Mapping[str, Any], requests: int, processes: int, seed: int, out: Path, source: str
) -> int:
    """Writes the path of the patterns (a file of a path) and of what they leave to statistics.

    Returns how many of its files, the first ones, are the patterns'. Raises WorkloadError naming `source`.
    """
    with naming(source):
        made = native.call("pioneer_weave", json.dumps(uncovered), processes, seed, patterns, requests, out)
    return int(made["files_of_patterns"])
