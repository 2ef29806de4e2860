"""RADAR's evaluation (paper 004, section III): its array and decompositions, its manager's gain, and that of disks.

The manager and the fine model are those of `stripewise replicate --what-if`, on requests made in memory. What it
chooses is then read from mechanical disks (crates/disk), one for each server: streams of different clients interleave
there, which the fine model leaves out. Everything is simulated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from common import GIB, MIB, Given, progress, write_result
from shingled import with_facts
from shingled_pictures import draw_grid
from stripewise.cluster import Cluster, Network, Target
from stripewise.layout import whole_file
from stripewise.model.radar import PAGE_BYTES, READAHEAD_BYTES
from stripewise.replicas.accesses import Accesses, Extent
from stripewise.replicas.blocks import Standing
from stripewise.replicas.candidate import Candidate, Room
from stripewise.replicas.prices import REPLICA_BASE, Pieces
from stripewise.replicas.radar import RadarOptions, radar
from stripewise.replicas.setting import DOMAIN_BITS, Setting
from stripewise.swd.disk import Disk, read_disk
from stripewise.swd.simulate import Fill, Scheme, Setup, simulate_disk
from stripewise.swd.workload import trace_workload

Int = npt.NDArray[np.int64]
Span = tuple[int, int]

#: The array (section III-B): time, X, Y, Z; elements of 32 bytes; 64 GiB in stripes of 1 MiB over eight servers.
STEPS, SIDE, ELEMENT = 128, 256, 32
ROW = SIDE * ELEMENT
PLANE = SIDE * ROW
VOLUME = SIDE * PLANE
SERVERS, STRIPE = 8, MIB
FILE = "/array"
#: Time steps that all decompositions but `time` read: four (2 GiB), the first of them in the middle of the array.
FIRST_STEP, STEPS_READ = 60, 4
#: Columns of many clients are tens of millions of blocks: of them one step is read, by clients alike.
COLUMN_STEPS = 1
#: Draws of the order in which clients take turns.
SEEDS = 2
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128)
#: Table III has no figures for more than 16 clients of one process per node.
CLIENTS_ALONE = (1, 2, 4, 8, 16)
PER_NODE = 8
#: ROMIO's buffer of a collective read, one contiguous read at a time (`cb_buffer_size`).
COLLECTIVE_BUFFER = 16 * MIB
DECOMPOSITIONS = ("row", "column", "cube", "time")


def cluster_of(per_node: int) -> Cluster:
    """Table II: eight I/O servers."""
    startup_s, per_byte_s = 6.20e-3, 0.0212e-6
    targets = tuple(
        Target(f"d{number}", "hdd", "dir", Path(f"d{number}"), 0, startup_s, startup_s, per_byte_s, per_byte_s)
        for number in range(SERVERS)
    )
    return Cluster(Path("table-II"), Network(32.9e-6, 0.00112e-6, per_node), targets)


def part(number: int, of: int) -> Span:
    """A part of the side cut into `of`."""
    return number * SIDE // of, (number + 1) * SIDE // of


def box(t: Span, x: Span, y: Span, z: Span) -> tuple[Int, int]:
    """Where the contiguous blocks of a box of the array begin, in order, and their bytes."""
    bounds = [(t, VOLUME), (x, PLANE), (y, ROW)]
    block = (z[1] - z[0]) * ELEMENT
    first = z[0] * ELEMENT
    # Steps that go on where the one before ends are one block.
    while bounds and bounds[-1][1] == block:
        (low, high), stride = bounds.pop()
        first, block = first + low * stride, block * (high - low)
    offset = np.array([first], dtype=np.int64)
    for (low, high), stride in bounds:
        offset = (offset[:, None] + np.arange(low, high, dtype=np.int64) * stride).reshape(-1)
    return offset, block


def boxes(kind: str, clients: int, steps: int, begin: int = 0) -> Iterator[tuple[int, tuple[Span, Span, Span, Span]]]:
    """Each client's boxes (figure 6). `begin` is where in X, Y and Z the subvolume of `time` begins.

    Cubes: the least perfect cube no less than the clients, dealt out in the order of the file; the first clients get
    one more where it does not come out even, and neighbours in Z are one box.
    """
    side, when = (0, SIDE), (FIRST_STEP, FIRST_STEP + steps)
    half = (begin, begin + SIDE // 2)
    cut = next(n for n in range(1, SIDE) if n**3 >= clients)
    each, more = divmod(cut**3, clients)
    block = 0
    for client in range(clients):
        if kind == "row":
            yield client, (when, part(client, clients), side, side)
        elif kind == "column":
            yield client, (when, side, side, part(client, clients))
        elif kind == "time":
            yield client, ((client, client + 1), half, half, half)
        else:
            end = block + each + (client < more)
            while block < end:
                x, y, z = block // cut**2, block // cut % cut, block % cut
                wide = min(cut - z, end - block)
                yield client, (when, part(x, cut), part(y, cut), (part(z, cut)[0], part(z + wide - 1, cut)[1]))
                block += wide


def independent(kind: str, clients: int, steps: int, begin: int = 0) -> Accesses:
    """What clients read, each its boxes."""
    several = [(client, *box(*spans)) for client, spans in boxes(kind, clients, steps, begin)]
    return _accesses(
        f"{clients} clients read by {kind}",
        np.concatenate([np.full(len(offset), client) for client, offset, _ in several]),
        np.concatenate([offset for _, offset, _ in several]),
        np.concatenate([np.full(len(offset), size) for _, offset, size in several]),
    )


def collective(clients: int, steps: int) -> Accesses:
    """What aggregators read, one per node of eight clients: even contiguous parts of the whole range (two-phase I/O).

    Rows and columns cover the same range, and their aggregators read the same.
    """
    count = -(-clients // PER_NODE)
    size = min(COLLECTIVE_BUFFER, steps * VOLUME // count)
    offset = FIRST_STEP * VOLUME + np.arange(steps * VOLUME // size, dtype=np.int64) * size
    client = np.repeat(np.arange(count), len(offset) // count)
    return _accesses(f"{count} aggregators of {clients} clients", client, offset, np.full(len(offset), size))


def _accesses(words: str, client: Int, offset: Int, size: Int) -> Accesses:
    return Accesses(FILE, words, True, client, np.zeros(len(client), dtype=bool), offset, size)


@dataclass(frozen=True)
class Modelled:
    """What the manager makes of a case: its candidate, whether it is made, and the pieces of both."""

    candidate: Candidate
    is_built: bool
    original: Pieces
    replica: Pieces

    @property
    def gain(self) -> float:
        """The fine model's time of the original over the replica's."""
        found = self.candidate.times_as_fast
        assert found is not None
        return found

    @property
    def servers_per_client(self) -> int:
        """n_p of the coarse model."""
        return int(self.candidate.scheme.removeprefix("n_p "))


def modelled(pattern: Accesses, per_node: int) -> Modelled:
    """The choice of RADAR's manager on Table II's figures, without a bound of space."""
    cluster = cluster_of(per_node)
    setting = Setting(cluster, {FILE: whole_file(cluster.active, STRIPE, GIB)})
    extent = Extent(STEPS * VOLUME, pattern.bytes)
    made = radar([pattern], setting, Room(), {FILE: extent}, RadarOptions())
    candidate = made.chosen[0] if made.chosen else made.refused[0].candidate
    assert candidate is not None, made.refused
    after = setting.replica_pieces(pattern, Standing(candidate.blocks), candidate.layout)
    return Modelled(candidate, bool(made.chosen), setting.original_pieces(pattern), _behind(after))


def _behind(pieces: Pieces) -> Pieces:
    """Pieces of replicas as they stand on disks: behind the original, holes of replica objects left out."""
    original = STEPS * VOLUME // SERVERS
    domain = (pieces.offset - REPLICA_BASE) >> DOMAIN_BITS
    assert not domain.any()
    return replace(pieces, offset=pieces.offset - REPLICA_BASE + original)


@dataclass(frozen=True)
class Disks:
    """How servers read.

    `unit` is what a server reads for a client before another has its turn; None: a whole run. `reads_on` is the fine
    model's read-ahead: gaps below 128 KiB are read over; without it, pages between blocks are skipped. `keeps` are
    servers that read nothing twice, for whichever client.
    """

    unit: int | None = READAHEAD_BYTES
    reads_on: bool = True
    keeps: bool = False
    queue: str = "fcfs"
    sectors: int = 780


@cache
def drive(sectors: int) -> Disk:
    """A drive of 250 GB at 7,200 rpm after Table II: 45 MB/s with 780 sectors a track, 6.2 ms for a block of the array.

    Seeks and switches are those of the shipped generic drive.
    """
    return with_facts(read_disk("generic"), "table-II", zones=[[0, sectors]], surfaces=10)


def seconds(pieces: Pieces, disks: Disks, seed: int, folder: Path) -> float:
    """Until the last server has read all pieces, when all clients begin at once.

    A client has one read at a time on each server of its pieces, and clients take turns, in an order that is drawn.
    """
    server, start, end = _turns(pieces, disks, seed)
    clients = len(np.unique(pieces.client))
    # One read more than clients: a disk that holds one only would lose a turn between reads of one client.
    setup = Setup(drive(disks.sectors), queue=disks.queue, queue_depth=clients + 1)
    slowest = 0.0
    for number in np.unique(server):
        chosen = server == number
        rows = zip((start[chosen] // 512).tolist(), (end - start)[chosen].tolist(), strict=True)
        path = folder / "server.spc"
        path.write_text("".join(f"0,{lba},{size},R,0\n" for lba, size in rows))
        report = simulate_disk(setup, Scheme("hdd"), Fill("16 GiB", used_bytes=16 * GIB), trace_workload(path, "spc"))
        slowest = max(slowest, float(report["seconds"]))
    return slowest


def _turns(pieces: Pieces, disks: Disks, seed: int) -> tuple[Int, Int, Int]:
    """Reads in the order in which servers serve them: server, first byte and end, in whole pages."""
    stream, start, end = _runs(pieces, disks.reads_on)
    if disks.unit is not None:
        first, last = start // disks.unit, (end - 1) // disks.unit
        times = last - first + 1
        row = np.repeat(np.arange(len(start)), times)
        window = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        low, high = window * disks.unit, (window + 1) * disks.unit
        stream = stream[row]
        start, end = (low, high) if disks.keeps else (np.maximum(low, start[row]), np.minimum(high, end[row]))
    begins = np.flatnonzero(np.concatenate([[True], stream[1:] != stream[:-1]]))
    turn = np.arange(len(stream)) - np.repeat(begins, np.diff(np.append(begins, len(stream))))
    client, server = stream // SERVERS, stream % SERVERS
    drawn = np.random.default_rng(seed).permuted(np.tile(np.arange(client.max() + 1), (SERVERS, 1)), axis=1)
    order = np.lexsort((drawn[server, client], turn, server))
    server, start, end = server[order], start[order], end[order]
    if disks.keeps:
        _, kept = np.unique(np.stack([server, start]), axis=1, return_index=True)
        kept.sort()
        server, start, end = server[kept], start[kept], end[kept]
    return server, start, end


def _runs(pieces: Pieces, reads_on: bool) -> tuple[Int, Int, Int]:
    """Each client's runs on each server as the fine model joins them (prices.py): stream, first byte, end."""
    stream = pieces.client * SERVERS + pieces.server
    order = np.argsort(stream, kind="stable")
    stream = stream[order]
    start = pieces.offset[order] // PAGE_BYTES * PAGE_BYTES
    end = -(-(pieces.offset[order] + pieces.size[order]) // PAGE_BYTES) * PAGE_BYTES
    gap = start[1:] - end[:-1]
    goes_on = (stream[1:] == stream[:-1]) & (start[1:] >= start[:-1]) & (gap < (READAHEAD_BYTES if reads_on else 1))
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    return stream[begins], start[begins], np.maximum.reduceat(end, begins)


def gain_on(disks: Disks, case: Modelled, seeds: int) -> float:
    """The disks' time of the original over the replica's, the mean over the seeds."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return fmean(
            seconds(case.original, disks, seed, place) / seconds(case.replica, disks, seed, place)
            for seed in range(1, seeds + 1)
        )


def turns_s(pieces: Pieces) -> float:
    """The busiest disk's time where a server of several clients pays a startup for each read, of one for each run.

    Ours: the fine model's T'_s + T'_rw on Table II, with the seeks between clients that it leaves out.
    """
    target = cluster_of(1).active[0]
    stream, start, end = _runs(pieces, reads_on=True)
    several = np.bincount(np.unique(stream) % SERVERS, minlength=SERVERS) > 1
    server = stream % SERVERS
    reads = np.where(several[server], (end - 1) // READAHEAD_BYTES - start // READAHEAD_BYTES + 1, 1)
    cost = reads * target.startup_read_s + (end - start) * target.per_byte_read_s
    return float(np.bincount(server, weights=cost).max())


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, equal values at their mean rank; gains that differ in the fourth digit only are equal."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    _, number, count = np.unique([float(f"{value:.3g}") for value in values], return_inverse=True, return_counts=True)
    found: npt.NDArray[np.float64] = (np.cumsum(count) - (count - 1) / 2)[number]
    return found


#: Whom the model is held against, by the name of its column; the first one is that of the acceptance.
HELD = {
    "disks": Disks(),
    "disks, 1 MiB turns": Disks(unit=MIB),
    "disks, whole runs": Disks(unit=None),
    "disks, pages kept": Disks(keeps=True),
}
MODEL, TURNS = "model", "model with turns"


def gain_row(kind: str, clients: int, case: Modelled, held: dict[str, Disks], seeds: int) -> dict[str, Any]:
    """A row: the case, n_p, whether a replica is built, the model's gain and that of disks."""
    candidate = case.candidate
    row: dict[str, Any] = {
        "decomposition": kind,
        "clients": clients,
        "servers_per_client": case.servers_per_client,
        "built": "yes" if case.is_built else "no",
        MODEL: case.gain,
        TURNS: turns_s(case.original) / turns_s(case.replica),
        **{name: gain_on(disks, case, seeds) for name, disks in held.items()},
        "model_s": {"original": candidate.original_s, "replica": candidate.replica_s},
        "reads": candidate.requests,
    }
    told = ", ".join(f"{name} {value:.3g}" for name, value in row.items() if isinstance(value, float))
    progress(f"{kind}, {clients} clients, built: {row['built']}: {told} times as fast, simulated")
    return row


def run_figure(given: Given, title: str, cases: Sequence[tuple[str, int]], per_node: int, is_collective: bool) -> None:
    """One of figures 11 to 13: the model's gain beside that of disks, decomposition by decomposition."""
    rows = []
    for kind, clients in cases:
        steps = min(COLUMN_STEPS if kind == "column" and not is_collective else STEPS_READ, given.requests)
        pattern = collective(clients, steps) if is_collective else independent(kind, clients, steps)
        rows.append(gain_row(kind, clients, modelled(pattern, per_node), HELD, given.seeds))
    write_result(
        given.out,
        {
            "rows": rows,
            **MEANINGS,
            "rank_correlation": {name: rank_correlation(column(rows, MODEL), column(rows, name)) for name in HELD},
            "seeds": given.seeds,
            "time_steps": given.requests,
        },
    )
    panels = []
    for kind in dict.fromkeys(kind for kind, _ in cases):
        mine = [row for row in rows if row["decomposition"] == kind]
        ticks = [str(row["clients"]) for row in mine]
        panels.append((kind, ticks, {name: column(mine, name) for name in (MODEL, *HELD)}))
    draw_grid(given.out / "result.svg", title, "clients", "original over replica, times as fast", panels)


def column(rows: Sequence[dict[str, Any]], name: str) -> list[float]:
    """A figure of all rows."""
    return [row[name] for row in rows]


#: What the keys of the rows mean, for the end of a result file.
MEANINGS = {
    "simulated": True,
    "unit": "time of the original over that of the replica; of disks the mean over the seeds",
    "column_label": "times as fast, simulated",
    "servers_per_client": "n_p of the coarse model",
    "built": "whether RADAR's manager makes the replica; where not, what it would give is shown all the same",
    MODEL: "the fine model of `replicate`, Table II",
    TURNS: "the same with a startup for each 128 KiB on a server of several clients, disks only",
    "disks": "mechanical disks, clients take turns with 128 KiB each, gaps below 128 KiB are read over",
    "disks, 1 MiB turns": "the same, 1 MiB each",
    "disks, whole runs": "the same, whole runs",
    "disks, pages kept": "as `disks`, on servers that read nothing twice, for whichever client",
    "model_s": "seconds by the model",
    "reads": "contiguous blocks that all clients read",
}
