"""Request tables of the benchmarks in the papers, written out loop by loop, without the recogniser's code.

Each takes the number of processes and gives (operation, offset, size) of every rank, in its order. Those of
workloads/mpiio.c follow its pattern.c.
"""

from __future__ import annotations

import random
from math import isqrt

KIB, MIB = 1 << 10, 1 << 20
Request = tuple[str, int, int]
Table = dict[int, list[Request]]


def side(processes: int) -> int:
    return max(each for each in range(1, isqrt(processes) + 1) if processes % each == 0)


def table(processes: int, of_rank) -> Table:
    return {rank: list(of_rank(rank)) for rank in range(processes)}


# workloads/mpiio.c, whose files are strongly scaled: each rank gets file / P.


def mpiio_sequential(processes: int, file=64 * MIB, request=256 * KIB) -> Table:
    own = file // request // processes
    return table(processes, lambda rank: [("write", (rank * own + i) * request, request) for i in range(own)])


def mpiio_interleaved(processes: int, file=64 * MIB, request=256 * KIB) -> Table:
    own = file // request // processes
    return table(processes, lambda rank: [("write", (i * processes + rank) * request, request) for i in range(own)])


def mpiio_strided(processes: int, file=64 * MIB, request=256 * KIB, pieces=4) -> Table:
    piece, own = request // pieces, file // request // processes
    return table(
        processes,
        lambda rank: [
            ("write", i * processes * request + rank * piece + k * processes * piece, piece)
            for i in range(own)
            for k in range(pieces)
        ],
    )


def mpiio_nested(processes: int, file=256 * MIB, request=256 * KIB, pieces=16) -> Table:
    piece, own = request // pieces, file // request // processes // 2 * 2
    outer = side(pieces)
    inner = pieces // outer
    group = inner * processes * piece
    return table(
        processes,
        lambda rank: [
            ("read", i * 2 * outer * group + half * group + rank * piece + o * 2 * group + k * processes * piece, piece)
            for half in range(2)
            for i in range(own // 2)
            for o in range(outer)
            for k in range(inner)
        ],
    )


def mpiio_tiles(processes: int, file=64 * MIB, request=256 * KIB, pieces=4) -> Table:
    piece, own = request // pieces, file // request // processes
    across = processes // side(processes)
    return table(
        processes,
        lambda rank: [
            ("write", ((rank // across * own + i) * pieces + k) * across * piece + rank % across * piece, piece)
            for i in range(own)
            for k in range(pieces)
        ],
    )


def mpiio_random(processes: int, file=64 * MIB, request=256 * KIB) -> Table:
    draw = random.Random(1)
    return table(
        processes, lambda rank: [("read", draw.randrange(file // request) * request, request) for _ in range(200)]
    )


def mpiio_zipf(processes: int, file=64 * MIB, request=64 * KIB, region=MIB) -> Table:
    draw = random.Random(2)
    regions = file // region
    weights = [1 / (k + 1) ** 0.8 for k in range(regions)]

    def of_rank(rank):
        for place in draw.choices(range(regions), weights, k=300):
            yield "read", place * region + draw.randrange(region // request) * request, request

    return table(processes, of_rank)


# PIO-Bench, as PDLA section 5.1.2 names its patterns.


def piobench_sequential(processes: int) -> Table:
    return table(processes, lambda rank: [("write", rank * 16 * MIB + i * 64 * KIB, 64 * KIB) for i in range(256)])


def piobench_simple_strided(processes: int) -> Table:
    return table(processes, lambda rank: [("read", (i * processes + rank) * 16 * KIB, 16 * KIB) for i in range(100)])


def piobench_nested_strided(processes: int) -> Table:
    """Vectors of 8 requests, 20 of them, twice as far apart as they are long."""
    return table(
        processes,
        lambda rank: [
            ("write", (v * 16 * processes + i * processes + rank) * 4 * KIB, 4 * KIB)
            for v in range(20)
            for i in range(8)
        ],
    )


def piobench_random_strided(processes: int) -> Table:
    draw = random.Random(3)

    def of_rank(rank):
        at = rank * 4 * KIB
        for _ in range(150):
            yield "read", at, 4 * KIB
            at += 4 * KIB * processes * draw.randrange(1, 60)

    return table(processes, of_rank)


def piobench_segmented(processes: int) -> Table:
    """Every segment of the file has a block for each process, of 16 requests."""
    block = 16 * 256 * KIB
    return table(
        processes,
        lambda rank: [
            ("write", (segment * processes + rank) * block + i * 256 * KIB, 256 * KIB)
            for segment in range(10)
            for i in range(16)
        ],
    )


def piobench_tiled(processes: int) -> Table:
    """Tiles of 32 rows, each row of a tile two requests of 8 KiB."""
    across = processes // side(processes)
    row = across * 16 * KIB
    return table(
        processes,
        lambda rank: [
            ("read", (rank // across * 32 + y) * row + rank % across * 16 * KIB + x * 8 * KIB, 8 * KIB)
            for y in range(32)
            for x in range(2)
        ],
    )


def mpi_tile_io(processes: int, element=32, nx=100, ny=48) -> Table:
    """A matrix of one tile for each process; a process accesses its tile row by row (PDLA section 5.1.3)."""
    across = processes // side(processes)
    return table(
        processes,
        lambda rank: [
            ("write", ((rank // across * ny + y) * across + rank % across) * nx * element, nx * element)
            for y in range(ny)
        ],
    )


def btio(processes: int, n=96, steps=5) -> Table:
    """NAS BT: a cube of five doubles per point, cut into pencils of a grid of processes, appended every step."""
    rows = side(processes)
    across = processes // rows
    nz, ny = n // rows, n // across
    return table(
        processes,
        lambda rank: [
            ("write", (((step * n + rank // across * nz + z) * n) + rank % across * ny + y) * n * 40, n * 40)
            for step in range(steps)
            for z in range(nz)
            for y in range(0, ny, 1)
        ],
    )


def hpio(processes: int, count=128, size=1000, space=24) -> Table:
    """Regions of a size with spaces between them, the ranks' regions by turns."""
    return table(
        processes,
        lambda rank: [("write", (i * processes + rank) * (size + space), size) for i in range(count)],
    )


def ior_segments(processes: int) -> Table:
    """-b 1m -t 256k -s 12, written and then read back."""
    return table(
        processes,
        lambda rank: [
            (op, (segment * processes + rank) * MIB + i * 256 * KIB, 256 * KIB)
            for op in ("write", "read")
            for segment in range(12)
            for i in range(4)
        ],
    )


def lanl_app2(processes: int) -> Table:
    """Anonymous LANL App 2 (PDLA section 5.2.4): small requests, medium ones, two large sizes in turn: three parts."""

    def of_rank(rank):
        for i in range(40):
            yield "write", (i * processes + rank) * 4 * KIB, 4 * KIB
        for i in range(30):
            yield "write", 64 * MIB + (i * processes + rank) * 48 * KIB, 48 * KIB
        for i in range(25):
            at = 512 * MIB + (i * processes + rank) * 448 * KIB
            yield "write", at, 192 * KIB
            yield "write", at + 192 * KIB, 256 * KIB

    return table(processes, of_rank)


# RADAR section III-B: an array of (time, X, Y, Z), each element 32 bytes, here smaller than there.
SHAPE = (4, 96, 96, 16)
ELEMENT = 32


def _array(start: tuple[int, ...], length: tuple[int, ...], shape=SHAPE) -> list[Request]:
    """All of a block, its contiguous rows one request each."""
    found = []
    for t in range(start[0], start[0] + length[0]):
        for x in range(start[1], start[1] + length[1]):
            for y in range(start[2], start[2] + length[2]):
                at = ((t * shape[1] + x) * shape[2] + y) * shape[3] + start[3]
                found.append(("read", at * ELEMENT, length[3] * ELEMENT))
    return found


def radar_row(processes: int) -> Table:
    t, x, y, z = SHAPE
    own = x // processes
    return table(processes, lambda rank: _array((0, rank * own, 0, 0), (t, own, y, z)))


def radar_column(processes: int) -> Table:
    t, x, y, z = SHAPE
    own = y // processes
    return table(processes, lambda rank: _array((0, 0, rank * own, 0), (t, x, own, z)))


def radar_cube(processes: int) -> Table:
    """A grid over X and Y, and Z whole or in halves."""
    t, x, y, z = SHAPE
    rows = side(processes)
    across = processes // rows
    dx, dy = x // rows, y // across
    return table(processes, lambda rank: _array((0, rank // across * dx, rank % across * dy, 0), (t, dx, dy, z // 2)))


def radar_time(processes: int) -> Table:
    """One subvolume of two time steps of its own for each process."""
    shape = (2 * processes, *SHAPE[1:])
    return table(processes, lambda rank: _array((2 * rank, 10, 20, 3), (2, 12, 8, 5), shape))


#: By name; those of chance have other requests in every run.
REGULAR = {
    each.__name__: each
    for each in (
        mpiio_sequential, mpiio_interleaved, mpiio_strided, mpiio_nested, mpiio_tiles, piobench_sequential,
        piobench_simple_strided, piobench_nested_strided, piobench_segmented, piobench_tiled, mpi_tile_io, btio, hpio,
        ior_segments, lanl_app2, radar_row, radar_column, radar_cube, radar_time,
    )
}  # fmt: skip
OF_CHANCE = {each.__name__: each for each in (mpiio_random, mpiio_zipf, piobench_random_strided)}
ALL = {**REGULAR, **OF_CHANCE}
