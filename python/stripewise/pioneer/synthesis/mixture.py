"""Paths of which some files are by symbolic patterns and the others by statistics (ours; docs/traces/pioneer.md).

Statistics go by the characteristics of the files that patterns do not cover, with sequence ids of the whole run; the
patterns' requests fill the holes (crates/pioneer/src/synthesis/weave.rs).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    programs = Fields(data["programs"], source, "programs.", WorkloadError)
    given = programs.data["uncovered"]
    if not isinstance(given, Mapping):
        raise programs.error(
            "uncovered",
            "is no object",
            "give it the keys requests and classes, or leave it out of patterns of all files",
        )
    fields = Fields(given, source, "programs.uncovered.", WorkloadError)
    fields.only({"requests", "classes"})
    requests = fields.integer("requests", 0, _REQUESTS_MAX)
    kept = {key: data[key] for key in ("processes", "apart", "together", "subgroups")}
    part = profile_of({"version": 1, **kept, "classes": fields.table("classes")}, f"{source}: programs.uncovered")
    opened = {data["programs"]["files"][number]["name"] for number in _opened(data["programs"]["body"])}
    for file_class, of in part.classes.items():
        for name in of.names:
            for above in sorted(opened.intersection(_above(name))):
                raise fields.error(
                    f"classes.{file_class}.names", f"has '{name}' below '{above}', a file of programs.files",
                    "give one of them another name",
                )  # fmt: skip
    return requests, part.as_json()


def _opened(nodes: Sequence[Mapping[str, Any]]) -> set[int]:
    """Numbers of the files that patterns open, but where a formula has the number."""
    numbers = [node.get("file", 0) for node in nodes if node.get("op") in ("open", "mpi_open")]
    found = {number for number in numbers if isinstance(number, int)}
    return found.union(*(_opened(node["body"]) for node in nodes if "body" in node))


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def write_mixture(
    patterns: Path, uncovered: Mapping[str, Any], requests: int, processes: int, seed: int, out: Path, source: str
) -> int:
    """Writes the path of the patterns (a file of a path) and of what they leave to statistics.

    Returns how many of its files, the first ones, are the patterns'. Raises WorkloadError naming `source`.
    """
    with naming(source):
        made = native.call("pioneer_weave", json.dumps(uncovered), processes, seed, patterns, requests, out)
    return int(made["files_of_patterns"])
