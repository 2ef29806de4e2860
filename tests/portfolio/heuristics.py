"""The heuristics: what anybody would try first, each at every grain, and a local search from the best of them."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stripewise.cluster import Target
from stripewise.workload import Workload

from .cells import Cells, Float, Int, by_grain, by_request
from .instances import PAGE, Instance
from .judge import Layout, Piece, as_plan, fits, plan_s, run

#: Cells are tried in these grains, the requests' own first.
GRAINS = tuple(PAGE << power for power in (6, 4, 8, 2, 13, 12, 11, 10, 9, 7, 5, 3, 1, 0))
#: Stripes of whole files.
STRIPES = tuple(PAGE << power for power in (8, 6, 4, 10, 12, 2, 0))
#: Steps in which hot-first splits the cells between classes.
BISECTIONS = 40
UNLIMITED = float(1 << 62)


@dataclass
class Found:
    """The quickest layout so far: its name, its simulated seconds on the run that it was made from."""

    name: str
    layout: Layout
    seconds: float
    #: The cells and the server of each, where it is such a layout.
    dealt: tuple[Cells, Int] | None = None


def quickest(instance: Instance, workload: Workload, limit_s: float) -> Found:
    """The quickest layout that the portfolio finds within about `limit_s`."""
    until = time.monotonic() + limit_s
    best: Found | None = None
    for name, layout, dealt in _tried(instance, workload):
        plan = as_plan(layout, workload)
        if not fits(instance, plan):
            continue
        seconds = plan_s(instance, plan, workload)
        if best is None or seconds < best.seconds:
            best = Found(name, layout, seconds, dealt)
        if time.monotonic() > until:
            break
    assert best is not None, f"instance {instance.number}: nothing fits"
    return improved(instance, workload, best, until)


def layouts(instance: Instance, workload: Workload, limit_s: float) -> Iterator[Layout]:
    """What the heuristics lay out within about `limit_s` and what fits, without the local search."""
    until = time.monotonic() + limit_s
    for _, layout, _ in _tried(instance, workload):
        if fits(instance, as_plan(layout, workload)):
            yield layout
        if time.monotonic() > until:
            return


def _tried(instance: Instance, workload: Workload) -> Iterator[tuple[str, Layout, tuple[Cells, Int] | None]]:
    """Every layout of every heuristic."""
    targets = instance.targets
    files = len(workload.files)
    requested = by_request(workload)
    for name, cells in [
        ("requests", requested),
        *((f"{grain // 1024} KiB", by_grain(workload, grain)) for grain in GRAINS),
    ]:
        if cells is None:
            continue
        for order in ("density", "saving"):
            server = hot_first(instance, cells, order)
            if server is not None:
                yield f"hot first by {order}, {name}", cells.layout(server, targets, files), (cells, server)
        if name in ("requests", "64 KiB", "1024 KiB"):
            server = longest_first(instance, cells)
            if server is not None:
                yield f"longest first, {name}", cells.layout(server, targets, files), (cells, server)
        if name == "1024 KiB":
            # What is quickly tried first, should the time end.
            yield from by_period(instance, workload)
            yield from apart(instance, workload)
            yield from spread(instance, workload)


# Whole files ----------------------------------------------------------------------------------------------------------


def spread(instance: Instance, workload: Workload) -> Iterator[tuple[str, Layout, None]]:
    """All files over all servers, the slow and the swift ones: equal stripes, and such that all end together."""
    groups = {"all": instance.targets, **_classes(instance.targets)}
    for name, targets in groups.items():
        for stripe in STRIPES:
            equal = tuple((target.name, stripe) for target in targets)
            yield f"{name}, stripes of {stripe // 1024} KiB", _whole(workload, equal), None
            if len({_pace(target, stripe) for target in targets}) > 1:
                speed = np.array([1 / _pace(target, stripe) for target in targets])
                widths = np.round(speed / speed.sum() * stripe * len(targets) / PAGE).astype(int) * PAGE
                weighted = tuple(
                    (target.name, width) for target, width in zip(targets, widths.tolist(), strict=True) if width
                )
                yield f"{name}, weighted stripes about {stripe // 1024} KiB", _whole(workload, weighted), None


def apart(instance: Instance, workload: Workload) -> Iterator[tuple[str, Layout, tuple[Cells, Int]]]:
    """One server for every file; and files in as many parts as there are servers, one each."""
    targets = instance.targets
    whole = by_grain(workload, 1 << 50)
    assert whole is not None
    many = [("file", whole)]
    longest = max(file.size_bytes for file in workload.files)
    for parts in (len(targets), 2 * len(targets), 4 * len(targets)):
        cells = by_grain(workload, -(-longest // parts // PAGE) * PAGE)
        if cells is not None:
            many.append((f"{parts}th", cells))
    for name, cells in many:
        server = longest_first(instance, cells)
        if server is not None:
            yield f"one server per {name}", cells.layout(server, targets, len(workload.files)), (cells, server)


def _whole(workload: Workload, stripes: tuple[tuple[str, int], ...]) -> Layout:
    return [[Piece(0, -(-file.size_bytes // PAGE) * PAGE, stripes)] for file in workload.files]


def _classes(targets: tuple[Target, ...]) -> dict[str, tuple[Target, ...]]:
    kinds: dict[str, list[Target]] = {}
    for target in targets:
        kinds.setdefault(target.name.rstrip("0123456789"), []).append(target)
    return {name: tuple(members) for name, members in kinds.items()}


def _pace(target: Target, size: int) -> float:
    return (target.startup_read_s + target.per_byte_read_s * size) / target.channels


# Cells ----------------------------------------------------------------------------------------------------------------


def hot_first(instance: Instance, cells: Cells, order: str) -> Int | None:
    """The hottest cells on the swiftest class, as many as leaves all classes equally busy or fills the room.

    `order` says what is hot: work per byte of room, or seconds spared. None where the data do not fit.
    """
    classes = sorted(_classes(instance.targets).values(), key=lambda members: _pace(members[0], 64 * 1024))
    work = [cells.seconds(members[0]) for members in classes]
    saved = work[-1] - work[0]
    hot = np.argsort(-(saved / cells.length if order == "density" else saved), kind="stable")
    held = np.cumsum(cells.length[hot], dtype=np.float64)
    ahead = [np.cumsum(each[hot]) for each in work]

    def bounds(limit_s: float) -> list[int] | None:
        """Where each class ends in the order, if all can be done within `limit_s`."""
        ends, low = [], 0
        for members, done in zip(classes, ahead, strict=True):
            room = _room(members[0]) * len(members) + (held[low - 1] if low else 0.0)
            busy = limit_s * len(members) + (done[low - 1] if low else 0.0)
            low = min(int(np.searchsorted(held, room, side="right")), int(np.searchsorted(done, busy, side="right")))
            ends.append(low)
        return ends if low == len(hot) else None

    low_s, high_s = 0.0, sum(float(each.sum()) for each in work) + 1e-9
    ends = bounds(high_s)
    if ends is None:
        return None
    for _ in range(BISECTIONS):
        middle = (low_s + high_s) / 2
        tried = bounds(middle)
        low_s, high_s, ends = (low_s, middle, tried) if tried else (middle, high_s, ends)
    server = np.zeros(len(hot), dtype=np.int64)
    first, left = 0, np.zeros(0, dtype=np.int64)
    for members, end, each in zip(classes, ends, work, strict=True):
        left = _dealt(instance, np.concatenate([left, hot[first:end]]), members, each, cells.length, server)
        first = end
    return None if len(left) else server


def _dealt(instance: Instance, chosen: Int, members: tuple[Target, ...], work: Float, length: Int, server: Int) -> Int:
    """Deals cells to the servers of one class, longest processing time first; returns those that found no room."""
    at = {target.name: number for number, target in enumerate(instance.targets)}
    room = {target.name: _room(target) for target in members}
    queue = [(0.0, at[target.name], target.name) for target in members]
    left = []
    for cell in chosen[np.argsort(-work[chosen], kind="stable")].tolist():
        full = []
        while queue and room[queue[0][2]] < length[cell]:
            full.append(heapq.heappop(queue))
        if queue:
            busy, number, name = queue[0]
            server[cell] = number
            room[name] -= length[cell]
            heapq.heapreplace(queue, (busy + work[cell], number, name))
        else:
            left.append(cell)
        for each in full:
            heapq.heappush(queue, each)
    return np.array(left, dtype=np.int64)


def longest_first(instance: Instance, cells: Cells) -> Int | None:
    """Longest processing time over unlike servers: each cell where the server is done first with it."""
    targets = instance.targets
    if len(cells.length) * len(targets) > 2_000_000:
        return None
    seconds = np.array([cells.seconds(target) for target in targets])
    busy = np.zeros(len(targets))
    room = np.array([_room(target) for target in targets])
    server = np.zeros(len(cells.length), dtype=np.int64)
    for cell in np.argsort(-seconds.max(axis=0), kind="stable").tolist():
        after = np.where(room >= cells.length[cell], busy + seconds[:, cell], np.inf)
        chosen = int(after.argmin())
        if not np.isfinite(after[chosen]):
            return None
        busy[chosen] = after[chosen]
        room[chosen] -= cells.length[cell]
        server[cell] = chosen
    return server


def _room(target: Target) -> float:
    return float(target.usable_bytes) if target.capacity_bytes else UNLIMITED


# Periods --------------------------------------------------------------------------------------------------------------


def by_period(instance: Instance, workload: Workload) -> Iterator[tuple[str, Layout, None]]:
    """The part of each period that is asked for on swift servers, the rest on slow ones, in as many pieces as there
    are pairs."""
    kinds = list(_classes(instance.targets).values())
    slow, swift = kinds[0], [target for members in kinds[1:] for target in members]
    periods = [_period(file.requests) for file in workload.files]
    if not any(periods):
        return
    for parts in (1, 4):
        pairs = max(len(slow), len(swift)) * parts
        layout: list[list[Piece]] = []
        for file, period in zip(workload.files, periods, strict=True):
            if period is None:
                equal = tuple((target.name, 256 * 1024) for target in slow)
                layout.append([Piece(0, -(-file.size_bytes // PAGE) * PAGE, equal)])
                continue
            length, begin, end = period
            each = max(1, -(-file.size_bytes // length // pairs)) * length
            pieces = []
            for number, start in enumerate(range(0, file.size_bytes, each)):
                here = min(each, -(-(file.size_bytes - start) // PAGE) * PAGE)
                pieces.append(Piece(start, here, _cycle(swift, slow, number, length, begin, end)))
            layout.append(pieces)
        yield f"by period, {pairs} pieces", layout, None


def _cycle(
    swift: list[Target], slow: tuple[Target, ...], number: int, length: int, begin: int, end: int
) -> tuple[tuple[str, int], ...]:
    first = slow[number % len(slow)].name
    hot = swift[number % len(swift)].name
    if end == length:
        return ((first, begin), (hot, end - begin)) if begin else ((hot, length),)
    if begin == 0:
        return ((hot, end), (first, length - end))
    other = slow[(number + 1) % len(slow)].name
    # A cycle names a server once: where there is one slow server only, the head of the period is swift too.
    return (
        ((first, begin), (hot, end - begin), (other, length - end))
        if other != first
        else ((hot, end), (first, length - end))
    )


def _period(requests: np.ndarray) -> tuple[int, int, int] | None:
    """A length in whole pages that all requests repeat with, and the span of it that they ask for, if it is not all."""
    if len(requests) < 2:
        return None
    sizes, count = np.unique(requests["size"], return_counts=True)
    common = int(sizes[count.argmax()])
    offset = np.unique(requests["offset"])
    length = int(np.gcd.reduce(np.diff(offset))) if len(offset) > 1 else 0
    if length % PAGE or length <= common or not length:
        return None
    begin = int(offset[0]) % length
    low, high = begin // PAGE * PAGE, -(-(begin + common) // PAGE) * PAGE
    return (length, low, high) if high <= length else None


# Local search ---------------------------------------------------------------------------------------------------------


def improved(instance: Instance, workload: Workload, found: Found, until: float) -> Found:
    """Moves and exchanges of cells between the busiest server and others, kept where the simulated run gets quicker."""
    if found.dealt is None:
        return found
    cells, server = found.dealt
    server = server.copy()
    targets = instance.targets
    names = [target.name for target in targets]
    rng = np.random.default_rng(instance.number)
    seconds = (
        np.array([cells.seconds(target) for target in targets]) if len(targets) * len(server) < 5_000_000 else None
    )
    if seconds is None:
        return found
    room = np.array([_room(target) for target in targets])
    busy = _busy(instance, found.layout, workload, names)
    failed = 0
    while time.monotonic() < until and failed < 400:
        held = np.bincount(server, weights=cells.length, minlength=len(targets))
        tried = _stepped(rng, cells, server, seconds, busy, room - held)
        failed += 1
        if tried is None:
            continue
        layout = cells.layout(tried, targets, len(workload.files))
        taken = plan_s(instance, as_plan(layout, workload), workload)
        if taken < found.seconds * (1 - 1e-6) and fits(instance, as_plan(layout, workload)):
            server, failed = tried, 0
            name = found.name if found.name.endswith("improved") else f"{found.name}, improved"
            found = Found(name, layout, taken, (cells, server))
            busy = _busy(instance, layout, workload, names)
    return found


def _busy(instance: Instance, layout: Layout, workload: Workload, names: list[str]) -> Float:
    report = run(instance, as_plan(layout, workload), workload)
    servers = {each["name"]: float(each["busy_s"]) for each in report["servers"]}
    return np.array([servers[target.name] / target.channels for target in instance.targets])


def _stepped(
    rng: np.random.Generator, cells: Cells, server: Int, seconds: Float, busy: Float, free: Float
) -> Int | None:
    """A move or an exchange that evens the busiest server with one of the others; None where this one cannot be."""
    high = int(busy.argmax()) if rng.random() < 0.7 else int(rng.integers(len(busy)))
    low = int(busy.argmin()) if rng.random() < 0.5 else int(rng.integers(len(busy)))
    here = np.flatnonzero((server == high) & (cells.count.sum(axis=1) > 0))
    if high == low or not len(here):
        return None
    result = server.copy()
    wanted = (busy[high] - busy[low]) / 2 * rng.uniform(0.3, 1.2)
    order = rng.permutation(here)
    moved = order[np.cumsum(seconds[high, order]) <= max(wanted, 0.0)][: int(2 ** rng.uniform(0, 12))]
    if not len(moved):
        moved = order[:1]
    need = float(cells.length[moved].sum())
    if need > free[low]:
        there = np.flatnonzero(server == low)
        cold = there[np.argsort(seconds[high, there], kind="stable")]
        out = cold[: int(np.searchsorted(np.cumsum(cells.length[cold]), need - free[low])) + 1]
        if float(cells.length[out].sum()) - need > free[high]:
            return None
        result[out] = high
    result[moved] = low
    return result
