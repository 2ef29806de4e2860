"""Symbolic patterns in a profile (key `programs`): trees of loops whose numbers are formulas of P, and a path of them.

docs/formats.md (Profile of a workload, programs) has every key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from ...errors import WorkloadError
from ...files.fields import Fields
from .. import path as paths
from ..characterization.distribution import Distribution, Law, Quantiles, Values, read_distribution
from ..operations import operations
from .formula import value_at

#: Nodes of all trees, at most: of more nobody would say that they are regular.
NODES_MAX = 8192
#: Loops in each other, at most.
DEPTH_MAX = 32
NS = 1e9
#: Steps of the quantiles that stand for a law.
_LAW_STEPS = 256
_KEYS = {
    "processes", "guess", "classes", "ranks", "files", "comms", "groups", "views", "slack", "body", "durations_s",
    "reference", "durations", "floor", "uncovered",
}  # fmt: skip
_NODE = {
    "op", "file", "who", "comm", "view", "other", "alone", "at", "at_rank", "stride", "size", "slack", "together",
    "count", "body",
}  # fmt: skip


def has_program(programs: Any) -> bool:
    """Whether there are patterns, and not only what the likeness is judged by."""
    return isinstance(programs, Mapping) and bool(programs.get("body"))


def write_program(
    programs: Mapping[str, Any], processes: int, seed: int, out: Path, source: str, apart: bool = False
) -> None:
    """Writes the path of the patterns for so many processes, whose slacks are drawn apart or alike.

    Raises WorkloadError naming `source` and the key.
    """
    made = _Checked(programs, processes, seed, source, apart).path()
    try:
        paths.from_json(out, made)
        if _prepare(made, out, processes):
            paths.from_json(out, made)
    except WorkloadError as error:
        said = str(error).removeprefix(f"{out}: ")
        raise WorkloadError(f"{source}: programs: make no path at {processes} processes ({said}); edit them") from error


def _prepare(made: Mapping[str, Any], out: Path, processes: int) -> bool:
    """Gives files the bytes that the first and the last rank read of them and nobody wrote before; whether any lack."""
    found = np.array([each["bytes"] for each in made["files"]], np.int64)
    before = found.copy()
    kinds = np.zeros(256, np.int8)
    for each in operations().values():
        if each.is_data:
            kinds[each.number] = 2 if "write" in each.name else 1
    written = np.zeros(len(found), np.int64)
    for rank in sorted({processes - 1, 0}, reverse=True):
        rows = paths.requests(out, processes, rank)
        rows = rows[(kinds[rows["op"]] > 0) & (rows["offset"] >= 0) & (rows["size"] > 0)]
        ends = rows["offset"] + rows["size"].astype(np.int64)
        is_write = kinds[rows["op"]] == 2
        for file in np.unique(rows["file"]).tolist():
            mine = rows["file"] == file
            reach = np.maximum.accumulate(np.where(is_write[mine], ends[mine], written[file]))
            lacks = ~is_write[mine] & (ends[mine] > reach)
            if lacks.any():
                found[file] = max(found[file], int(ends[mine][lacks].max()))
            written[file] = reach[-1]
    for each, count in zip(made["files"], found.tolist(), strict=True):
        each["bytes"] = count
    return bool((found > before).any())


class _Checked:
    """The patterns of a profile, checked while they are turned into the JSON form of a path."""

    def __init__(self, programs: Any, processes: int, seed: int, source: str, apart: bool) -> None:
        self.fields = Fields(programs, source, "programs.", WorkloadError)
        self.fields.only(_KEYS)
        self.processes, self.seed, self.apart = processes, seed, apart
        self.nodes = 0

    def path(self) -> dict[str, Any]:
        """As `workpath_from_json` takes it."""
        fields = self.fields
        slack = [
            read_distribution(
                Fields({"slack": each}, fields.source, f"programs.slack[{at}].", WorkloadError), "slack", 0
            )
            for at, each in enumerate(fields.items("slack") if "slack" in fields.data else [])
        ]
        self.slack = slack
        return {
            "processes": 0,
            "seed": self.seed,
            "files": [self.file(each) for each in self.inner("files")],
            "comms": self.listed("comms") or ["world"],
            "groups": self.listed("groups"),
            "views": [
                {key: self.number(each, key) for key in ("piece", "distance", "pieces", "tile")}
                for each in self.inner("views")
            ],
            "distributions": [_drawn(each) for each in slack],
            "nodes": [self.node(each, DEPTH_MAX) for each in self.inner("body")],
        }

    def listed(self, key: str) -> list[Any]:
        return list(self.fields.items(key)) if key in self.fields.data else []

    def inner(self, key: str, of: Fields | None = None) -> list[Fields]:
        of = of or self.fields
        rows = of.items(key) if key in of.data else []
        return [Fields(each, of.source, f"{of.where}{key}[{at}].", WorkloadError) for at, each in enumerate(rows)]

    def number(self, fields: Fields, key: str, default: int = 0) -> int:
        """A number, or a formula's value. Raises WorkloadError with the key."""
        given = fields.data.get(key, default)
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise fields.error(key, f"= {given!r:.60} is no number or formula of P", 'write e.g. "65536 x P"')
        try:
            found = value_at(given, self.processes)
        except ValueError as error:
            raise fields.error(key, f": {error}", "give another -n, or a formula that fits") from error
        if not -(1 << 62) < found < 1 << 62:
            raise fields.error(key, f"= {given!r:.60} is out of range", "give a smaller number")
        return found

    def file(self, fields: Fields) -> dict[str, Any]:
        fields.only({"name", "class", "bytes", "present", "directory"})
        flags = {key: bool(fields.data.get(key, False)) for key in ("present", "directory")}
        name, of = fields.text("name"), fields.choice("class", ("root", "shared", "private"))
        return {"name": name, "class": of, "bytes": self.number(fields, "bytes"), **flags}

    def node(self, fields: Fields, depth: int) -> dict[str, Any]:
        fields.only(_NODE)
        self.nodes += 1
        if not depth or self.nodes > NODES_MAX:
            raise fields.error("body", f"has more than {DEPTH_MAX} levels or {NODES_MAX} nodes", "make it smaller")
        made: dict[str, Any] = {key: self.number(fields, key) for key in ("at", "at_rank", "stride")}
        if "body" in fields.data:
            made["rounds"] = self.number(fields, "count", 1)
            made["body"] = [self.node(each, depth - 1) for each in self.inner("body", fields)]
            return made
        op = fields.text("op")
        if op not in operations():
            raise fields.error("op", f"= '{op:.60}' is no operation", "use one of docs/formats.md")
        made |= {"op": op, "size": self.number(fields, "size"), "who": fields.data.get("who", "all")}
        made |= {key: self.number(fields, key) for key in ("file", "comm", "view")}
        made |= {"alone": bool(fields.data.get("alone", False)), "apart": self.apart}
        slack = fields.data.get("slack", [])
        if not isinstance(slack, Sequence) or not all(
            isinstance(each, int) and 0 <= each < len(self.slack) for each in slack
        ):
            raise fields.error("slack", f"= {slack!r:.60} is no list of numbers in programs.slack", "count from 0")
        if slack:
            made["slack_first"], made["slack_rest"] = slack[0] + 1, slack[-1] + 1
        given = fields.data.get("together", False)
        together = given if isinstance(given, list) else [given]
        if len(together) not in (1, 2) or not all(isinstance(each, bool) for each in together):
            raise fields.error("together", f"= {given!r:.60} is not true, false or two of them", "write true or false")
        return made | {"together_first": together[0], "together_rest": together[-1]}


def _drawn(distribution: Distribution) -> dict[str, Any]:
    """Seconds as nanoseconds, as a path has them."""
    if isinstance(distribution, Values):
        largest = max(distribution.weights)
        scale = 1 if all(float(each).is_integer() for each in distribution.weights) else 1e6 / largest
        rows = zip(distribution.values, distribution.weights, strict=True)
        return {"values": [[round(value * NS), max(1, round(weight * scale))] for value, weight in rows]}
    if isinstance(distribution, Quantiles):
        return {"quantiles": [round(each * NS) for each in distribution.quantiles]}
    if distribution.name == "constant":
        return {"values": [[round(distribution.parameters[0] * NS), 1]]}
    return {"quantiles": [max(0, round(each * NS)) for each in _quantiles(distribution)]}


def _quantiles(law: Law) -> list[float]:
    """Of a law at the middles of equal steps of probability."""
    shares = [(step + 0.5) / _LAW_STEPS for step in range(_LAW_STEPS)]
    first = float(law.parameters[0])
    second = float(law.parameters[-1])
    if law.name == "uniform":
        return [first, second]
    if law.name == "exponential":
        return [-first * math.log1p(-share) for share in shares]
    if law.name == "pareto":
        return [first * (1 - share) ** (-1 / second) for share in shares]
    return [NormalDist(first, second).inv_cdf(share) if second else first for share in shares]
