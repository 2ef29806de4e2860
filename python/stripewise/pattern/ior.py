"""Patterns as IOR command lines: what IOR's blocks and segments can say, and one sentence on what they cannot.

IOR gives rank r of P in segment s the block at (s x P + r) x block, and in it transfers of one size, one after another.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from ..files.spelling import path_meant
from ..units import GIB, KIB, MIB, quoted
from .report import Described, FilePatterns
from .together import GlobalPattern
from .words import nest_of

#: Why most patterns have no command.
NO_BLOCKS = "not laid out as blocks of equal ranks from offset 0 on"


def _size(count: int) -> str:
    for unit, name in ((GIB, "g"), (MIB, "m"), (KIB, "k")):
        if count % unit == 0:
            return f"{count // unit}{name}"
    return str(count)


#: Of each layer, what IOR calls it.
APIS = {"posix": "POSIX", "mpi": "MPIIO"}


def ior_commands(file: FilePatterns, processes: int) -> Iterator[str]:
    """A command line for each pattern of a file that has one, and a line beginning with # on those that have none."""
    reasons: Counter[str] = Counter()
    for each in file.patterns:
        command = _command(each, processes, APIS[file.layer])
        if isinstance(command, str):
            reasons[command] += 1
        else:
            path = path_meant(file.path)
            yield " ".join([*command, "-o", shlex.quote(path) if path.isprintable() else quoted(path)])
    if reasons:
        without, count = sum(reasons.values()), len(file.patterns)
        of = "its one pattern" if count == 1 else "any pattern" if without == count else f"{without:,} of {count:,}"
        many = len(reasons) > 1
        why = "; ".join(f"{number:,} x {reason}" if many else reason for reason, number in reasons.most_common())
        text = f"# IOR: {file.path}: no command for {of}: {why}; use --as fio"
        yield "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _command(each: Described, processes: int, api: str) -> list[str] | str:
    """The words of the command but for the file, or why there is none."""
    shape = _blocks(each, processes)
    if isinstance(shape, str):
        return shape
    block, transfer, segments, extra = shape
    modes = {"read": "-r", "write": "-w"}
    if each.operation not in modes:
        return "reads and writes in one loop"
    ranks = len(each.pattern.ranks)
    words = ["mpiexec", "-n", str(ranks), "ior", "-a", api, modes[each.operation], "-E", "-k"]
    words += ["-t", _size(transfer), "-b", _size(block), "-s", str(segments), *extra]
    if each.repetitions > 1:
        words += ["-i", str(each.repetitions)]
    return words


def _row_of_ranks(pattern: GlobalPattern) -> tuple[int, int] | str:
    """Where rank 0 begins, and how far each next one lies behind the one before; or why there is no such thing."""
    assert pattern.formulas is not None
    start = pattern.formulas[0]
    if len(start.coefficients) > 1 or any(not formula.is_constant for formula in pattern.formulas[1:]):
        return NO_BLOCKS
    if pattern.ranks != tuple(range(len(pattern.ranks))):
        # Of others it is said first that they begin elsewhere.
        return NO_BLOCKS if start.constant else "not of ranks 0 to P - 1"
    return start.constant, start.coefficients[0]


def _blocks(each: Described, processes: int) -> tuple[int, int, int, list[str]] | str:
    """Block, transfer and segments, and further words; or why not."""
    segment = each.pattern.segments[0]
    ranks = len(each.pattern.ranks)
    if segment.places is not None:
        return "random places (IOR's -z only shuffles the transfers of a rank's own blocks)"
    row = each.pattern.row
    if not segment.is_regular or segment.loop is None or (each.pattern.formulas is None and row is None):
        return "places of ranks that follow no formula"
    dimensions, inner = nest_of(segment.loop)
    if inner.body:
        return "several requests in one loop"
    moving = [dimension for dimension in dimensions if dimension[1]]
    blocks = _row_of_ranks(each.pattern) if row is None else row
    if isinstance(blocks, str):
        return blocks
    first, step = blocks
    if first:
        return NO_BLOCKS
    run = size = inner.size
    if moving and moving[-1][1] == size:
        run *= moving.pop()[0]
    if ranks > 1 and step != run:
        return "ranks whose distance is not the block that each of them has"
    if not moving:
        return run, size, 1, []
    if len(moving) == 1 and moving[0][1] == ranks * run:
        return run, size, moving[0][0], []
    return "strides other than those of IOR's segments"
