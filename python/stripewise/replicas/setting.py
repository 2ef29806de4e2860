"""Where replicas would stand: a cluster, the files as they lie, and prices of patterns on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..layout import Layout, target_bytes, whole_file
from ..units import GIB, STRIPE_FALLBACK_BYTES
from .accesses import Accesses, Writes
from .blocks import Standing, StridedBlocks, first_touches, folded
from .candidate import Candidate
from .copying import FILE, Steps, building, writing
from .prices import REPLICA_BASE, Pieces, Placed, Servers, seconds

Int = npt.NDArray[np.int64]

#: Replicas that are priced together have addresses of their own on a server, so that no run goes from one to another.
DOMAINS, DOMAIN_BITS = 1 << 12, 48


@dataclass(frozen=True)
class Shape:
    """What a replica of a pattern holds: its blocks in order, and the bytes of each process in them."""

    blocks: tuple[StridedBlocks, ...]
    held: tuple[int, ...]
    #: Whether bytes were left out that stand elsewhere.
    is_cut: bool = False

    @property
    def bytes(self) -> int:
        """Of all blocks."""
        return sum(self.held)


@dataclass(frozen=True)
class Chosen:
    """Where a manager puts a replica: targets in words, scheme in words, layout, its own figure, and reasons."""

    space: str
    scheme: str
    layout: Layout
    benefit_s: float
    reasons: tuple[str, ...] = ()


class Setting:
    """A cluster, and the layouts of files that are known; other files are taken to lie in equal stripes over all."""

    def __init__(self, cluster: Cluster, layouts: Mapping[str, Layout] | None = None) -> None:
        self.cluster = cluster
        self.servers = Servers.of(cluster)
        names = set(self.servers.names)
        self._known = {
            path: layout
            for path, layout in (layouts or {}).items()
            if {name for region in layout.regions for name, _ in region.stripes} <= names
        }
        self._placed: dict[str, Placed] = {}
        self._shapes: dict[Accesses, Shape] = {}
        self._original_s: dict[Accesses, float] = {}

    def original(self, path: str) -> Layout:
        """How a file lies: as the trace tells, else in the stripes of DEF."""
        return self._known.get(path) or whole_file(self.cluster.active, STRIPE_FALLBACK_BYTES, GIB)

    def is_known(self, path: str) -> bool:
        """Whether the trace tells how a file lies, on targets that are there still."""
        return path in self._known

    def shape(self, pattern: Accesses, taken: tuple[Int, Int] | None = None) -> Shape:
        """The blocks of a pattern, without the bytes in `taken` (starts, ends)."""
        if pattern not in self._shapes:
            self._shapes[pattern] = self._cut(pattern, None)
        whole = self._shapes[pattern]
        if taken is None:
            return whole
        shape = self._cut(pattern, taken)
        return shape if shape.bytes == whole.bytes else replace(shape, is_cut=True)

    def _cut(self, pattern: Accesses, taken: tuple[Int, Int] | None) -> Shape:
        row, offset, size = first_touches(pattern.offset, pattern.size, taken)
        return Shape(*folded(pattern.client[row], offset, size))

    def original_s(self, pattern: Accesses) -> float:
        """A pattern on the file as it lies."""
        if pattern not in self._original_s:
            self._original_s[pattern] = seconds(self.servers, self.original_pieces(pattern))
        return self._original_s[pattern]

    def original_pieces(self, pattern: Accesses) -> Pieces:
        """A pattern's requests on the file as it lies: what the MPI library makes of them, where the trace has it."""
        if pattern.below is not None:
            made = pattern.below
            row, server, at, size = self._where(pattern.file).cut(made.offset, made.size)
            return Pieces(row, made.client[row], np.zeros(len(row), dtype=bool), server, at, size)
        row, server, at, size = self._where(pattern.file).cut(pattern.offset, pattern.size)
        return Pieces(row, pattern.client[row], pattern.write[row], server, at, size)

    def replica_pieces(self, pattern: Accesses, standing: Standing, layout: Layout, number: int = 0) -> Pieces:
        """A pattern's requests where a replica has their bytes, and on the file where not.

        `number` tells replicas that are priced together apart. A copy serves a request that lies in one of its blocks,
        and no part of another one; a home serves parts.
        """
        row, logical, at, size = standing.find(pattern.offset, pattern.size)
        if not pattern.write.any():
            split = np.bincount(row, minlength=len(pattern.offset)) > 1
            whole = np.flatnonzero(split)
            kept = ~split[row]
            row = np.concatenate([row[kept], whole])
            logical = np.concatenate([logical[kept], pattern.offset[whole]])
            at = np.concatenate([at[kept], np.full(len(whole), -1)])
            size = np.concatenate([size[kept], pattern.size[whole]])
        there = at >= 0
        placed = Placed(layout.regions, self.servers.names, REPLICA_BASE + (number % DOMAINS << DOMAIN_BITS))
        parts = [
            (row[chosen], where.cut(offset[chosen], size[chosen]))
            for where, offset, chosen in ((placed, at, there), (self._where(pattern.file), logical, ~there))
        ]
        rows = np.concatenate([mine[cut[0]] for mine, cut in parts])
        server, offset, length = (np.concatenate([cut[number] for _, cut in parts]) for number in (1, 2, 3))
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        request = rows
        if pattern.below is not None:
            # What a call finds side by side in a copy is one read.
            place = np.full(len(pattern.offset), -1, np.int64)
            place[row[there]] = at[there]
            goes_on = (place[:-1] >= 0) & (place[1:] == place[:-1] + pattern.size[:-1])
            goes_on &= pattern.below.call[1:] == pattern.below.call[:-1]
            request = np.cumsum(np.concatenate([[True], ~goes_on]))[rows]
        return Pieces(request, pattern.client[rows], pattern.write[rows], server[order], offset[order], length[order])

    def build_s(self, path: str, blocks: Sequence[StridedBlocks], layout: Layout) -> float:
        """To make a replica: one process reads its bytes, then writes them, by the model.

        Of emulated targets in the order and the chunks of the builder, which waits for every access; of others in the
        order of the file, for what is read ahead stays in memory until the other columns want it.
        """
        if self.servers.emulated.any():
            return seconds(self.servers, self._stepped(path, building(blocks), [layout], is_apart=True))
        standing = Standing(blocks)
        start, end = standing.intervals()
        row, server, at, size = self._where(path).cut(start, end - start)
        whole = np.array([standing.bytes], dtype=np.int64)
        written = Placed(layout.regions, self.servers.names, REPLICA_BASE).cut(np.zeros(1, np.int64), whole)
        none = np.zeros(len(server), np.int64)
        reads = seconds(self.servers, Pieces(row, none, none.astype(bool), server, at, size))
        one = np.zeros(len(written[0]), np.int64)
        return reads + seconds(self.servers, Pieces(one, one, one == 0, *written[1:]))

    def copied_s(self, candidates: Sequence[Candidate], writes: Writes) -> tuple[float, ...]:
        """What it takes to write these bytes to copies as well, by copy, where they have them; processes act at once.

        On emulated targets the file's own writes stand between those of its copies, part by part, and neither goes on
        where it ended: what that costs is shared by what each copy takes alone.
        """
        steps = writing(writes.client, writes.offset, writes.size, [each.blocks for each in candidates])
        path, layouts = candidates[0].file, [each.layout for each in candidates]
        alone = [
            seconds(self.servers, self._stepped(path, steps.chosen(steps.copy == number), layouts))
            for number in range(len(candidates))
        ]
        if not self.servers.emulated.any() or not sum(alone):
            return tuple(alone)
        row, server, at, size = self._where(path).cut(writes.offset, writes.size)
        before = Pieces(row, writes.client[row], np.ones(len(row), dtype=bool), server, at, size)
        both = seconds(self.servers, self._stepped(path, steps, layouts))
        copied_s = max(0.0, both - seconds(self.servers, before))
        return tuple(copied_s * each / sum(alone) for each in alone)

    def _stepped(self, path: str, steps: Steps, layouts: Sequence[Layout], is_apart: bool = False) -> Pieces:
        """Accesses where the file and its copies lie; with `is_apart` one waits for each server by itself."""
        places = {FILE: self._where(path)}
        for number, layout in enumerate(layouts):
            base = REPLICA_BASE + (number % DOMAINS << DOMAIN_BITS)
            places[number] = Placed(layout.regions, self.servers.names, base)
        found = []
        for number, placed in places.items():
            mine = np.flatnonzero(steps.copy == number)
            row, *where = placed.cut(steps.offset[mine], steps.size[mine])
            found.append((mine[row], *where))
        rows, server, at, size = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        request = np.arange(len(rows)) if is_apart else rows
        return Pieces(request, steps.client[rows], steps.write[rows], server[order], at[order], size[order])

    def candidate(self, pattern: Accesses, shape: Shape, chosen: Chosen) -> Candidate:
        """The pattern's replica on a layout, priced."""
        standing = Standing(shape.blocks)
        moved = ("bytes of earlier replicas are left out",) if shape.is_cut else ()
        return Candidate(
            file=pattern.file,
            words=pattern.words,
            also=pattern.also,
            blocks=shape.blocks,
            operation=pattern.operation,
            processes=pattern.processes,
            requests=len(pattern.size),
            bytes=pattern.bytes,
            request_bytes=pattern.request_bytes,
            space=chosen.space,
            scheme=chosen.scheme,
            layout=chosen.layout,
            benefit_s=chosen.benefit_s,
            original_s=self.original_s(pattern),
            replica_s=seconds(self.servers, self.replica_pieces(pattern, standing, chosen.layout)),
            space_bytes=target_bytes(chosen.layout.regions, shape.bytes),
            build_s=self.build_s(pattern.file, shape.blocks, chosen.layout),
            reasons=(*chosen.reasons, *moved),
        )

    def together_s(self, patterns: Sequence[Accesses], candidates: Sequence[Candidate]) -> tuple[float, float]:
        """Patterns that act at once, as their files lie and on their candidates."""
        before = Pieces.joined(self.original_pieces(each) for each in patterns)
        after = Pieces.joined(
            self.replica_pieces(each, Standing(candidate.blocks), candidate.layout, number)
            for number, (each, candidate) in enumerate(zip(patterns, candidates, strict=True))
        )
        return seconds(self.servers, before), seconds(self.servers, after)

    def _where(self, path: str) -> Placed:
        if path not in self._placed:
            self._placed[path] = Placed(self.original(path).regions, self.servers.names)
        return self._placed[path]


def shared(candidates: Sequence[Candidate], original_s: float, replica_s: float) -> tuple[Candidate, ...]:
    """Candidates that are priced together, each with its share of both times, by what it takes alone."""
    before, after = sum(each.original_s for each in candidates), sum(each.replica_s for each in candidates)
    found = []
    for each in candidates:
        mine = original_s * each.original_s / before if before else 0.0
        then = replica_s * each.replica_s / after if after else 0.0
        found.append(replace(each, benefit_s=mine - then, original_s=mine, replica_s=then))
    return tuple(found)
