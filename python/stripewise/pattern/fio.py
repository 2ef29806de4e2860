"""Patterns as fio job files: one job per pattern, its clones the ranks.

What fio's sequential, strided and zoned offsets cannot say stands as a comment with the reason.
"""

from __future__ import annotations

from typing import Any

from .ranks import RankFormula
from .report import Described
from .words import nest_of


def fio_job(each: Described, path: str, name: str) -> str:
    """A job section, or lines beginning with # that say why there is none."""
    options = _options(each)
    if isinstance(options, str):
        return f"# fio, {name}: {options}"
    words = [f"[{name}]", "stonewall", f"filename={path.replace(':', chr(92) + ':')}", "ioengine=psync", "direct=0"]
    return "\n".join([*words, *(f"{key}={value}" for key, value in options.items())])


def _options(each: Described) -> dict[str, Any] | str:
    ranks = len(each.pattern.ranks)
    clones = {"numjobs": ranks} if ranks > 1 else {}
    segment = each.pattern.segments[0]
    if each.spatial in ("random", "random strided"):
        places = segment.places
        assert places is not None
        if places.size_min != places.size_max:
            return "random requests of several sizes"
        how = {"read": "randread", "write": "randwrite"}.get(each.operation, "randrw")
        low = min(part.places.low for part in each.pattern.segments if part.places)
        high = max(part.places.high for part in each.pattern.segments if part.places)
        size = places.size_min
        return {
            "rw": how, "bs": size, "offset": low, "size": (high - low) // size * size,
            "io_size": size * places.requests, "norandommap": 1,
            "blockalign": max(1, min(places.alignment_bytes, size)), **clones,
        }  # fmt: skip
    if not segment.is_regular or segment.loop is None or each.pattern.formulas is None:
        return "the places of requests follow no formula"
    if any(not formula.is_constant for formula in each.pattern.formulas[1:]):
        return "counts, sizes or strides differ by rank"
    if each.operation not in ("read", "write"):
        return "reads and writes in one loop"
    start = _start(each.pattern.formulas[0], each.pattern.ranks)
    if start is None:
        return "the ranks lie in a grid, which offset_increment cannot say"
    dimensions, inner = nest_of(segment.loop)
    if inner.body:
        return "several different requests in one loop"
    shape = _shape(each.operation, [one for one in dimensions if one[1]], inner.size)
    if isinstance(shape, str):
        return shape
    offset, increment = start
    if "low" in shape:
        offset += shape.pop("low")
    loops = {"loops": each.repetitions} if each.repetitions > 1 and each.spatial != "fixed" else {}
    if each.spatial == "fixed":
        shape["io_size"] = inner.size * each.repetitions
    return {**shape, "offset": offset, **({"offset_increment": increment} if ranks > 1 else {}), **clones, **loops}


def _start(formula: RankFormula, ranks: tuple[int, ...]) -> tuple[int, int] | None:
    """Offset of the first clone, and how much further each next one begins."""
    is_row = ranks == tuple(range(ranks[0], ranks[0] + len(ranks)))
    if not is_row or (formula.grid and not formula.is_constant):
        return None
    step = formula.coefficients[0]
    return (formula(ranks[0]), step) if step >= 0 else None


def _shape(operation: str, moving: list[tuple[int, int]], size: int) -> dict[str, Any] | str:
    if not moving:
        return {"rw": operation, "bs": size, "size": size}
    count, stride = moving[-1]
    run = count * size
    if len(moving) == 1:
        if stride == size:
            return {"rw": operation, "bs": size, "size": run}
        if stride < 0:
            back = -stride * (count - 1)
            return {"rw": f"{operation}:{stride - size}", "bs": size, "size": back + size, "io_size": run, "low": -back}
        return {"rw": f"{operation}:{stride - size}", "bs": size, "size": stride * count, "io_size": run}
    if len(moving) == 2 and stride == size:
        segments, outer = moving[0]
        return {
            "rw": operation, "bs": size, "size": segments * outer, "io_size": segments * run, "zonemode": "strided",
            "zonesize": run, "zonerange": run, "zoneskip": outer - run,
        }  # fmt: skip
    return f"a nested stride of {len(moving)} dimensions"
