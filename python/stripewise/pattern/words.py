"""Patterns in a storage engineer's words: one sentence for each."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import gcd

from ..units import GIB, KIB, MIB, SMALL_BYTES, format_size, time_text
from .local import LARGE_BYTES, Distribution, Segment
from .ranks import RankFormula
from .records import Kind
from .together import GlobalPattern
from .tree import Tree

#: A loop of more parts is told by its round as a whole.
PARTS_MAX = 3


def size_text(count: int) -> str:
    """Bytes with the largest binary unit that leaves a whole number."""
    for unit, name in ((GIB << 10, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count and count % unit == 0:
            return f"{count // unit:,} {name}"
    return f"{count:,} B"


def size_class(count: int) -> str:
    """small, medium or large (workload.md, Patterns)."""
    return "small" if count <= SMALL_BYTES else "medium" if count <= LARGE_BYTES else "large"


def ranks_text(ranks: Sequence[int], processes: int, is_ranked: bool = True) -> str:
    """Whom a sentence is about."""
    one = "rank" if is_ranked else "process"
    if len(ranks) == 1:
        return f"{one.capitalize()} {ranks[0]}" if processes > 1 else "The process"
    # Numbers of processes count the launcher's as well.
    if len(ranks) == processes and (is_ranked or tuple(ranks) == tuple(range(processes))):
        return f"Each of {processes} {one}s" if is_ranked else f"Each of {processes} processes"
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    names = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    plural = f"{one}s" if is_ranked else "processes"
    return f"Each of the {plural} {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def formula_text(formula: RankFormula) -> str:
    """A number of bytes by rank: `r x 4 MiB + 1 KiB`, `(r div 4) x 1 MiB + (r mod 4) x 64 KiB`."""
    grid = formula.grid
    names = {
        0: ["r"],
        1: [f"(r div {grid[0]})", f"(r mod {grid[0]})"] if grid else [],
        2: [f"(r div {grid[0] * grid[1]})", f"(r div {grid[1]} mod {grid[0]})", f"(r mod {grid[1]})"]
        if len(grid) == 2
        else [],
    }[len(grid)]
    terms = [
        (f"{name} x {size_text(abs(each))}", each < 0)
        for name, each in zip(names, formula.coefficients, strict=True)
        if each
    ]
    if formula.constant or not terms:
        terms.append((size_text(abs(formula.constant)), formula.constant < 0))
    text = "".join(f" {'-' if is_negative else '+'} {term}" for term, is_negative in terms)
    return text[3:] if text.startswith(" + ") else f"-{text[3:]}"


def _start_text(formula: RankFormula, ranks: Sequence[int], one: str) -> str:
    """Where each rank begins; numbers that do not begin with 0 have no formula from 0, nor do those that go back."""
    step = formula.coefficients[0] if not formula.grid else 0
    first = step * ranks[0] + formula.constant
    if step > 0 > formula.constant and formula.constant % step == 0:
        return f"{one} r from (r - {-formula.constant // step:,}) x {size_text(step)} on"
    if step and (step < 0 or formula.constant < 0) and list(ranks) == list(range(ranks[0], ranks[0] + len(ranks))):
        way = "before" if step < 0 else "after"
        return f"{one} {ranks[0]} from {size_text(first)} on, each next {size_text(abs(step))} {way} it"
    return f"{one} r from {formula_text(formula)} on"


def _begins_text(pattern: GlobalPattern) -> str:
    """Where the members of a family begin that follows no formula of their numbers."""
    assert pattern.begins is not None
    if pattern.row is None:
        low, high = pattern.begins[0], pattern.begins[-1]
        return f"from offsets of their own between {size_text(low)} and {size_text(high)} on"
    first, step = pattern.row
    at = [segment.loop.at for segment in pattern.segments if segment.loop is not None]
    order = "" if at == sorted(at) else ", in another order than their numbers"
    return f"the lowest from {size_text(first)} on, each next {size_text(step)} after it{order}"


def operation_text(tree: Tree, kinds: Sequence[Kind]) -> str:
    """reads, writes, or both."""
    ops = [kinds[leaf.kind].op for leaf in tree.leaves()]
    if len(set(ops)) == 1:
        return f"{ops[0]}s"
    return "alternately reads and writes" if ops == [ops[0], ops[1]] * (len(ops) // 2) else "reads and writes"


def count_text(count: int, what: str) -> str:
    """`1 request`, `1,000 requests`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def loop_text(tree: Tree, kinds: Sequence[Kind]) -> str:
    """What one process does, without where: verb, requests, and how they follow each other."""
    verb = operation_text(tree, kinds)
    if not tree.body:
        return f"{verb} one {size_class(tree.size)} request of {size_text(tree.size)}"
    dimensions, inner = nest_of(tree)
    again = [count for count, stride in dimensions if stride == 0]
    moving = [(count, stride) for count, stride in dimensions if stride != 0]
    if inner.body:
        return f"{_body_text(inner, kinds)}{_rounds_text(dimensions)}"
    size = inner.size
    what = f"{size_class(size)} request{'' if tree.records == 1 else 's'} of {size_text(size)}"
    if not moving:
        return f"{verb} the same {size_text(size)} {tree.records:,} times"
    repeated = "".join(f", the whole repeated {count:,} times" for count in again)
    count = 1
    for each, _ in moving:
        count *= each
    return f"{verb} {count:,} {what} {_moving_text(moving, size)}{repeated}"


def nest_of(tree: Tree) -> tuple[list[tuple[int, int]], Tree]:
    """(count, stride) of the loops around one body, outermost first; and inside a record or a loop of several parts."""
    dimensions = []
    while tree.body and len(tree.body) == 1:
        dimensions.append((tree.count, tree.body[0].stride))
        tree = tree.body[0]
    return dimensions, tree


def _moving_text(moving: Sequence[tuple[int, int]], size: int) -> str:
    count, stride = moving[-1]
    if len(moving) == 1:
        if stride == size:
            return "contiguously"
        if stride == -size:
            return "contiguously backward"
        way = "backward " if stride < 0 else ""
        kind = f"{way}overlapping, each" if abs(stride) < size else f"{way}strided,"
        return f"{kind} {size_text(abs(stride))} after the one before" if abs(stride) < size else (
            f"{kind} one every {size_text(abs(stride))}"
        )  # fmt: skip
    if stride == size:
        inside = f"contiguous runs of {size_text(count * size)}"
        outside = moving[:-1]
        if len(outside) == 1:
            return f"in {outside[0][0]:,} segments: {inside}, one every {size_text(outside[0][1])}"
        return f"as {inside} in a {len(outside)}-dimensional stride: {_dimensions_text(outside)}"
    return f"in a {len(moving)}-dimensional nested stride: {_dimensions_text(moving)}"


def _dimensions_text(dimensions: Sequence[tuple[int, int]]) -> str:
    """Innermost first, as a program's loops are described."""
    return ", then ".join(f"{count:,} every {size_text(stride)}" for count, stride in reversed(dimensions))


def _part_text(part: Tree, kinds: Sequence[Kind]) -> str:
    """A part of a body."""
    if not part.body:
        return f"{kinds[part.kind].op}s {size_text(part.size)}"
    dimensions, inner = nest_of(part)
    is_run = len(dimensions) == 1 and dimensions[0][1] == inner.size
    return (
        f"{kinds[inner.kind].op}s {part.records:,} x {size_text(inner.size)} {'contiguously' if is_run else 'strided'}"
    )


def _body_text(loop: Tree, kinds: Sequence[Kind]) -> str:
    """A loop of several parts."""
    body = loop.body
    if len(body) > PARTS_MAX or any(nest_of(part)[1].body for part in body):
        return _round_text(loop, kinds)
    parts = [_part_text(part, kinds) for part in body]
    said = f"{', '.join(parts[:-1])} and {parts[-1]}"
    strides = list(dict.fromkeys(part.stride for part in body))
    if len(strides) > 1:
        moved = "moving on by " + ", ".join(size_text(part.stride) for part in body)
    elif strides == [0]:
        moved = "in the same places"
    elif _is_run(body) and body[-1].at + body[-1].size - body[0].at == strides[0]:
        moved = "contiguously"
    else:
        moved = f"moving on by {size_text(strides[0])}"
    return f"in turn {said}, {loop.count:,} rounds, {moved}"


def _round_text(loop: Tree, kinds: Sequence[Kind]) -> str:
    """A loop of many parts: how much a round is, what most of it is, and how far that moves on."""
    body = loop.body
    moved: Counter[tuple[str, int]] = Counter()
    for part in body:
        for op, size, count in _records_of(part, kinds):
            moved[op, size] += size * count
    (op, size), most = moved.most_common(1)[0]
    requests, total = sum(part.records for part in body), sum(part.bytes for part in body)
    share = f"mostly {op}s of {size_text(size)}" if 2 * most > total else (
        f"{operation_text(loop, kinds).removeprefix('alternately ')} of up to {size_text(max(s for _, s in moved))}"
    )  # fmt: skip
    said = f"repeats a round of {requests:,} requests, {format_size(total)} in all, {share}, {loop.count:,} times"
    strides = {part.stride for part in body}
    if strides == {0}:
        return f"{said}, in the same places"
    largest = max(body, key=lambda part: part.bytes)
    whose = "" if len(strides) == 1 else "the largest part "
    return f"{said}, {whose}moving on by {size_text(largest.stride)}" if largest.stride else said


def _records_of(tree: Tree, kinds: Sequence[Kind], times: int = 1) -> Iterator[tuple[str, int, int]]:
    """Operation and size of each record in a tree, and how often it comes."""
    if not tree.body:
        yield kinds[tree.kind].op, tree.size, times
    for part in tree.body:
        yield from _records_of(part, kinds, times * tree.count)


def _is_run(body: Sequence[Tree]) -> bool:
    """Whether records lie one behind the other."""
    return not any(part.body for part in body) and all(
        after.at == before.at + before.size for before, after in itertools.pairwise(body)
    )


def _rounds_text(dimensions: Sequence[tuple[int, int]]) -> str:
    around = [f"{count:,} times, {size_text(stride)} further each" if stride else f"{count:,} times over"
              for count, stride in reversed(dimensions)]  # fmt: skip
    return f"; all that {', and that '.join(around)}" if around else ""


def _from_to(values: Sequence[int], text: Callable[[int], str]) -> str:
    """One value, or the lowest to the highest."""
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


def _way_text(places: Sequence[Distribution]) -> str:
    """How requests follow each other: by chance half of them go back."""
    if all(each.is_forward for each in places):
        return "forward in random strides"
    runs, back = sum(each.sequential for each in places), max(each.backward for each in places)
    steps = sum(each.requests - 1 for each in places)
    again = f"going back {'once' if back == 1 else f'up to {back:,} times'}"
    if runs + sum(each.backward for each in places) == steps and runs * 2 > steps:
        return f"one behind the other, {again},"
    return "at random offsets"


def places_text(places: Sequence[Distribution]) -> str:
    """How the random requests of all ranks lie."""
    sizes = _from_to([size for each in places for size in (each.size_min, each.size_max)], size_text)
    how = _way_text(places)
    low, high = min(each.low for each in places), max(each.high for each in places)
    alignment = gcd(*(each.alignment_bytes for each in places))
    aligned = f", aligned to {size_text(alignment)}" if alignment > 1 else ""
    return f"of {sizes} {how} in {size_text(low)} to {size_text(high)}{aligned}"


def random_text(segments: Sequence[Segment], kinds: Sequence[Kind]) -> str:
    """Segments whose places follow no pattern, without whom."""
    places = [each.places for each in segments if each.places is not None]
    requests = _from_to([each.requests for each in places], lambda count: f"{count:,}")
    block = segments[0].loop
    if block is not None:
        # The verb stands before, those of several parts do not.
        inside = loop_text(block, kinds)
        inside = inside.removeprefix("in turn ") if inside.startswith("in turn ") else inside.split(" ", 1)[1]
        return f"{operation_text(block, kinds)} {requests} blocks {places_text(places)}; in each block {inside}"
    ops = {op: sum(n for each in places for kind, n in each.kinds if kinds[kind].op == op) for op in ("read", "write")}
    said = " and ".join(f"{op}s" for op, count in ops.items() if count)
    mixed = f" ({ops['read'] / sum(ops.values()):.0%} reads)" if all(ops.values()) else ""
    biggest = max(each.size_max for each in places)
    smallest = min(each.size_min for each in places)
    classes = "" if size_class(smallest) != size_class(biggest) else f" {size_class(biggest)}"
    return f"{said} {requests}{classes} requests{mixed} {places_text(places)}"


def interval_text(segments: Sequence[Segment]) -> str:
    """Said where every process keeps one interval."""
    found = [segment.interval_ns for segment in segments]
    if any(each is None for each in found):
        return ""
    middle = sorted(each for each in found if each is not None)[len(found) // 2]
    if middle == 1:
        # The clock of a prediction: an order.
        return ""
    return f", one every {time_text(middle / 1e9)}"


def sentence(pattern: GlobalPattern, kinds: Sequence[Kind], processes: int, is_ranked: bool = True) -> str:
    """The pattern in one sentence; of processes without a common formula the first stands for all."""
    who = ranks_text(pattern.ranks, processes, is_ranked)
    first = pattern.segments[0]
    when = interval_text(pattern.segments)
    if first.loop is None or first.places is not None:
        return f"{who} {random_text(pattern.segments, kinds)}{when}."
    does = loop_text(first.loop, kinds)
    if pattern.formulas is None and pattern.begins is not None:
        return f"{who} {does}, {_begins_text(pattern)}{when}."
    if pattern.formulas is None:
        varied = " (each in its own way; the first is told)" if len(pattern.ranks) > 1 else ""
        return f"{who} {does}, from {size_text(first.loop.at)} on{when}{varied}."
    others = [formula for formula in pattern.formulas[1:] if not formula.is_constant]
    start = pattern.formulas[0]
    one = "rank" if is_ranked else "process"
    where = _start_text(start, pattern.ranks, one) if not start.is_constant else (
        f"{'all ' if len(pattern.ranks) > 1 else ''}from {size_text(start.constant)} on"
    )  # fmt: skip
    if others:
        where += f" (told for {one} {pattern.ranks[0]}; counts, sizes or strides differ by {one})"
    return f"{who} {does}, {where}{when}."
