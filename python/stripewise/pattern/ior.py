"""Patterns as IOR command lines: what IOR's blocks and segments can say, and one sentence on what they cannot.

IOR gives rank r of P in segment s the block at (s x P + r) x block, and in it transfers of one size, one after another.
"""

from __future__ import annotations

import shlex

from ..units import GIB, KIB, MIB
from .report import Described
from .words import nest_of


def _size(count: int) -> str:
    for unit, name in ((GIB, "g"), (MIB, "m"), (KIB, "k")):
        if count % unit == 0:
            return f"{count // unit}{name}"
    return str(count)


def ior_command(each: Described, path: str, processes: int, api: str = "POSIX") -> str:
    """The command line, or a line beginning with # that says why there is none; `api` is what IOR is to call."""
    shape = _blocks(each, processes)
    if isinstance(shape, str):
        return _none(shape, each, path)
    block, transfer, segments, extra = shape
    modes = {"read": "-r", "write": "-w"}
    if each.operation not in modes:
        return _none("reads and writes in one loop; use --as fio", each, path)
    ranks = len(each.pattern.ranks)
    words = ["mpiexec", "-n", str(ranks), "ior", "-a", api, modes[each.operation], "-E", "-k"]
    words += ["-t", _size(transfer), "-b", _size(block), "-s", str(segments), *extra]
    if each.repetitions > 1:
        words += ["-i", str(each.repetitions)]
    return " ".join([*words, "-o", shlex.quote(path)])


def _none(why: str, each: Described, path: str) -> str:
    """The comment that stands for a pattern that has no command."""
    text = f"# IOR: {why}; {path}: {each.sentence}"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _blocks(each: Described, processes: int) -> tuple[int, int, int, list[str]] | str:
    """Block, transfer and segments, and further words; or why not."""
    segment = each.pattern.segments[0]
    ranks = len(each.pattern.ranks)
    if segment.places is not None:
        return "random places; IOR's -z only shuffles the transfers of a rank's own blocks; use --as fio"
    if not segment.is_regular or segment.loop is None or each.pattern.formulas is None:
        return "the ranks' places follow no formula; use --as fio"
    dimensions, inner = nest_of(segment.loop)
    if inner.body:
        return "several requests in one loop; use --as fio"
    moving = [dimension for dimension in dimensions if dimension[1]]
    start = each.pattern.formulas[0]
    if start.constant or len(start.coefficients) > 1 or any(not f.is_constant for f in each.pattern.formulas[1:]):
        return "not laid out as blocks of equal ranks from offset 0 on; use --as fio"
    step, size = start.coefficients[0], inner.size
    if each.pattern.ranks != tuple(range(ranks)):
        return "not of ranks 0 to P - 1; use --as fio"
    run = size
    if moving and moving[-1][1] == size:
        run *= moving.pop()[0]
    if ranks > 1 and step != run:
        return f"a rank begins {step:,} bytes after the one before, not its block of {run:,}; use --as fio"
    if not moving:
        return run, size, 1, []
    if len(moving) == 1 and moving[0][1] == ranks * run:
        return run, size, moving[0][0], []
    return "strides other than those of IOR's segments; use --as fio"
