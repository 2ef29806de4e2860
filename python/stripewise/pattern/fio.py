"""Patterns as fio job files: one job per pattern, its clones the ranks.

fio's options say contiguous, strided, segmented, repeated and random requests. For whatever else a job
replays a log of the requests, which is written where there is a directory for it; else a comment says why.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files.parts import write_durably
from ..files.spelling import path_meant
from .ranks import RankFormula
from .report import Described
from .words import nest_of

#: What fio takes for a comment, for a variable, or for an end where it stands in a name; it would open another file.
_NOT_IN_NAMES = "#;$\n\r"
#: Requests of a rank in their order: (read or write, offset, size).
Requests = Callable[[int], list[tuple[str, int, int]]]


def fio_job(each: Described, path: str, name: str) -> str:
    """A job section, or a line beginning with # that says why there is none."""
    if not _can_be_named(path):
        return f"# fio, {name}: its path has a character that fio takes for another; rename the file, or link to it"
    options = _options(each)
    if isinstance(options, str):
        return f"# fio, {name}: {options}; with -o DIR a log is written for fio to replay"
    head = [f"[{name}]", "stonewall", f"filename={_escaped(path)}", "ioengine=psync", "direct=0"]
    return "\n".join([*head, *(f"{key}={value}" for key, value in options.items())])


def fio_replay(each: Described, path: str, name: str, place: Path, requests: Requests) -> str:
    """As `fio_job`; where options cannot say it, jobs that replay logs, one per rank, written to `place`."""
    job = fio_job(each, path, name)
    if not job.startswith("#") or not _can_be_named(path):
        return job
    if " " in path:
        return f"# fio, {name}: its path has a space, which no log can hold; rename the file, or link to it"
    place.mkdir(parents=True, exist_ok=True)
    sections = []
    for number, rank in enumerate(each.pattern.ranks):
        log = place / f"{name}.{rank}.iolog"
        lines = [f"{path} {op} {offset} {size}" for op, offset, size in requests(rank)]
        text = "\n".join(["fio version 2 iolog", f"{path} add", f"{path} open", *lines, f"{path} close", ""])
        write_durably(log, text)
        words = [f"[{name}.{rank}]", *(["stonewall"] if number == 0 else []), "ioengine=psync", "direct=0"]
        sections.append("\n".join([*words, f"read_iolog={_escaped(str(log))}", "replay_no_stall=1"]))
    return "\n".join(sections)


def _can_be_named(path: str) -> bool:
    return path == path.strip() and path == path_meant(path) and not any(char in path for char in _NOT_IN_NAMES)


def _escaped(path: str) -> str:
    return path.replace(":", "\\:")


def _options(each: Described) -> dict[str, Any] | str:
    ranks = len(each.pattern.ranks)
    clones = {"numjobs": ranks} if ranks > 1 else {}
    segment = each.pattern.segments[0]
    if segment.places is not None:
        random = _random(each)
        return random if isinstance(random, str) else {**random, **clones}
    formulas, start = each.pattern.formulas, each.pattern.row
    if segment.loop is None or (formulas is None and start is None):
        return "the places of requests follow no formula"
    if formulas is not None and any(not formula.is_constant for formula in formulas[1:]):
        return "counts, sizes or strides differ by rank"
    if each.operation not in ("read", "write"):
        return "reads and writes in one loop"
    if start is None and formulas is not None:
        start = _start(formulas[0], each.pattern.ranks)
    if start is None:
        return "the ranks lie in a grid, which offset_increment cannot say"
    dimensions, inner = nest_of(segment.loop)
    if inner.body:
        return "several different requests in one loop"
    shape = _shape(each.operation, [one for one in dimensions if one[1]], inner.size)
    if isinstance(shape, str):
        return shape
    shape["offset"], increment = start
    if ranks > 1:
        shape["offset_increment"] = increment
    if each.spatial == "fixed":
        shape["io_size"] = inner.size * each.repetitions
    elif each.repetitions > 1:
        shape["loops"] = each.repetitions
    return {**shape, **clones}


def _random(each: Described) -> dict[str, Any] | str:
    places = [segment.places for segment in each.pattern.segments if segment.places is not None]
    if each.spatial != "random":
        return "random places of blocks, or only forward"
    size = places[0].size_min
    if any((one.size_min, one.size_max, one.requests) != (size, size, places[0].requests) for one in places):
        return "random requests of several sizes, or not as many by each rank"
    low, high = min(one.low for one in places), max(one.high for one in places)
    return {
        "rw": {"read": "randread", "write": "randwrite"}.get(each.operation, "randrw"), "bs": size, "offset": low,
        "size": high - low, "io_size": size * places[0].requests, "norandommap": 1,
    }  # fmt: skip


def _start(formula: RankFormula, ranks: tuple[int, ...]) -> tuple[int, int] | None:
    """Offset of the first clone, and how much further each next one begins."""
    is_row = ranks == tuple(range(ranks[0], ranks[0] + len(ranks)))
    if not is_row or (formula.grid and not formula.is_constant):
        return None
    step = formula.coefficients[0]
    return (formula(ranks[0]), step) if step >= 0 else None


def _shape(operation: str, moving: list[tuple[int, int]], size: int) -> dict[str, Any] | str:
    """Options of one rank's requests, without where they begin."""
    if not moving:
        return {"rw": operation, "bs": size, "size": size}
    count, stride = moving[-1]
    run = count * size
    if len(moving) == 1:
        if stride == size:
            return {"rw": operation, "bs": size, "size": run}
        if stride < 0:
            return "requests that go backward, of which fio does the lowest first"
        if stride < size:
            return "requests that overlap"
        region = stride * (count - 1) + size
        return {"rw": f"{operation}:{stride - size}", "bs": size, "size": region, "io_size": run}
    if len(moving) == 2 and stride == size and moving[0][1] > run:
        segments, outer = moving[0]
        zones = {"zonemode": "strided", "zonesize": run, "zonerange": run, "zoneskip": outer - run}
        region = outer * (segments - 1) + run
        return {"rw": operation, "bs": size, "size": region, "io_size": segments * run, **zones}
    return f"a nested stride of {len(moving)} dimensions"
