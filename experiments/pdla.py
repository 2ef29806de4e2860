"""PDLA's evaluation (paper 003, section 5): its benchmarks' requests, its managers' replicas, simulated runs of both.

Requests are made in memory, placed as the benchmarks place them. Managers are those of `stripewise replicate`, with the
mean startup of a disk; the simulator has a disk's arm in its place, read-ahead of each server, and processes that do
not keep step. What the paper does not print is taken here, and the experiments' pages say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from common import GIB, KIB, Given, gain, progress, write_result
from pictures import draw_bars
from stripewise.cluster import Cluster, Target, read_cluster
from stripewise.cluster.device import Device
from stripewise.layout import Layout, whole_file
from stripewise.replicas import MANAGERS, Accesses, Candidate, Found, Options, Setting, decide
from stripewise.replicas.accesses import Extent
from stripewise.replicas.blocks import Standing, StridedBlocks, folded
from stripewise.replicas.serving import served
from stripewise.replicas.simulated import simulate_served
from stripewise.simulate import Settings
from stripewise.simulate.sweep import changed_cluster
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload
from stripewise.workload.requests import Requests

Int = npt.NDArray[np.int64]
CLUSTER = Path(__file__).resolve().parent / "papers" / "pdla.toml"
FILE = "/pdla"
#: Section 5: eight storage nodes of 64; section 5.2: four SServers beside them.
HSERVERS, SSERVERS, CLIENT_NODES = 8, 4, 56
#: Section 5.1: "1-DH with a stripe size of 64 KB".
STRIPE_BYTES = 64 * KIB
#: Of a disk of 250 GB and 7200 rpm: 0.8 ms and 14.4 ms of a full stroke make a mean seek of 8.5 ms.
ARM = Device("seek", factor_s=0.0144, rotation_s=0.00833, capacity_bytes=250 * 10**9)
TRACK_TO_TRACK_S = 0.0008
#: A Linux file server's read-ahead of each object that is read in sequence.
READ_AHEAD_BYTES = 128 * KIB
#: Between requests of a process, exponential: real processes overtake each other (docs/simulator.md, No jitter).
THINK_S = 0.0001
#: A fixed stride's distance over its request: the paper gives none.
STRIDE = 2
OPERATIONS = ("read", "write")


@dataclass(frozen=True)
class Part:
    """One pattern of a run: requests of one size, or of sizes in turns, `request_bytes` being the first.

    `offset` has shape (processes, requests of each).
    """

    words: str
    request_bytes: int
    offset: Int
    turns: tuple[int, ...] = ()

    @property
    def size(self) -> Int:
        """Of a process's requests, in their order."""
        return np.resize(np.array(self.turns or (self.request_bytes,), dtype=np.int64), self.offset.shape[1])

    @property
    def end(self) -> int:
        """Behind the last byte."""
        return int((self.offset + self.size).max())


@dataclass(frozen=True)
class Conditions:
    """What the servers do; the experiments on causes change one of them."""

    has_read_ahead: bool = True
    #: A disk's arm, else a startup of always the same length.
    has_arm: bool = True
    #: Of a disk without an arm: another startup than a disk's mean one, for planners too.
    startup_s: float | None = None
    #: The part of its startup that an access is spared which goes on where the last one of the server ended.
    sequential_discount: float = 1.0
    #: Writes of a process that go on are written together up to so much, as a server's cache does; 0: none.
    write_behind_bytes: int = 0


@dataclass(frozen=True)
class Place:
    """A point of the axis: its tick, its keys in a row, its patterns one after another, and the published gains.

    Of every process the first `requests` of the part with the smallest ones are simulated, and as many bytes of each
    other part; replicas are of all.
    """

    tick: str
    keys: Mapping[str, Any]
    parts: tuple[Part, ...]
    requests: int
    conditions: Conditions = Conditions()


@dataclass(frozen=True)
class Stated:
    """What the paper says of one scheme over another along the whole axis, as gains: 9.26 is its "926 percent"."""

    key: str
    of: str
    over: str
    operation: str
    low: float | None
    high: float
    where: str = ""
    ticks: tuple[str, ...] = field(default=())

    @property
    def said(self) -> str:
        """In a phrase."""
        span = f"up to {percent(self.high)}" if self.low is None else f"{percent(self.low)} to {percent(self.high)}"
        return f"{NAMES[self.of]} over {NAMES[self.over]}, {self.operation}s{self.where}: {span}"


NAMES = {
    "original": "the original", "pd": "PD", "pd-file": "PD, in the file's order",
    "h-pdla": "PD+LA", "s-orig": "S-ORIG", "ns-pdla": "NS-PDLA",
    "s-pdla": "S-PDLA",
}  # fmt: skip


def percent(value: float) -> str:
    """A gain as the paper writes it."""
    return f"{100 * value:+.0f} %"


def cluster_of(processes: int, has_ssds: bool, conditions: Conditions) -> Cluster:
    """The paper's servers as planners see them; its processes are spread over all client nodes."""
    counted = changed_cluster(read_cluster(CLUSTER), {"hservers": HSERVERS, "sservers": SSERVERS})
    kept = [each if each.is_ssd else _disk(each, conditions) for each in counted.targets if has_ssds or not each.is_ssd]
    network = replace(counted.network, processes_per_node=-(-processes // CLIENT_NODES))
    return replace(counted, targets=tuple(kept), network=network)


def _disk(target: Target, conditions: Conditions) -> Target:
    startup_s = target.startup_read_s if conditions.startup_s is None else conditions.startup_s
    return replace(target, startup_read_s=startup_s, startup_write_s=startup_s)


def simulated_cluster(cluster: Cluster, conditions: Conditions) -> Cluster:
    """The same servers, with a disk's arm where there is one."""
    if not conditions.has_arm:
        return cluster
    first, arm = TRACK_TO_TRACK_S, replace(ARM, sequential_discount=conditions.sequential_discount)
    targets = [
        each if each.is_ssd else replace(each, device=arm, startup_read_s=first, startup_write_s=first)
        for each in cluster.targets
    ]
    return replace(cluster, targets=tuple(targets))


def strided(processes: int, request: int, per_process: int, base: int = 0, stride: int = STRIDE) -> Part:
    """IOR's fixed stride, each process in a region of its own; `stride` is in requests."""
    count = max(1, per_process // request)
    step = np.arange(count, dtype=np.int64) * request * stride
    region = count * request * stride
    offset = base + np.arange(processes, dtype=np.int64)[:, None] * region + step
    return Part(f"{processes} processes, one request of {request} every {request * stride}.", request, offset)


def nested(processes: int, request: int, per_process: int, inner: int = 16) -> Part:
    """PIO-Bench's nested stride: each process every p-th block, `inner` of them, then a gap as long as all theirs."""
    count = max(inner, per_process // request)
    number = np.arange(count, dtype=np.int64)
    span = processes * inner * request
    step = number // inner * 2 * span + number % inner * processes * request
    offset = np.arange(processes, dtype=np.int64)[:, None] * request + step
    return Part(f"{processes} processes, nested strides of {request}.", request, offset)


def tiles(processes: int, request: int, per_process: int) -> Part:
    """MPI-Tile-IO: the file is a matrix of n x n tiles, a request is a row of a tile."""
    side = round(processes**0.5)
    rows = max(1, per_process // request)
    rank = np.arange(processes, dtype=np.int64)[:, None]
    line = side * request
    offset = (rank // side * rows + np.arange(rows, dtype=np.int64)) * line + rank % side * request
    return Part(f"{side} x {side} tiles, rows of {request}.", request, offset)


def alternating(processes: int, turns: tuple[int, ...], per_process: int, base: int) -> Part:
    """Each process in a region of its own, one request after another whose sizes take turns."""
    rounds = max(1, per_process // sum(turns))
    size = np.tile(np.array(turns, dtype=np.int64), rounds)
    step = np.cumsum(size) - size
    offset = base + np.arange(processes, dtype=np.int64)[:, None] * (rounds * sum(turns)) + step
    return Part(
        f"{processes} processes, requests of {' and '.join(map(str, turns))} in turns.", turns[0], offset, turns
    )


def accesses(part: Part, write: bool, start_ns: int) -> Accesses:
    """The pattern as managers get it: a formula of the rank gives its places, so all processes have one replica."""
    processes, count = part.offset.shape
    return Accesses(
        FILE,
        part.words,
        True,
        np.repeat(np.arange(processes, dtype=np.int64), count),
        np.full(part.offset.size, write),
        part.offset.reshape(-1),
        np.tile(part.size, processes),
        start_ns,
        start_ns + 1,
    )


def workload_of(place: Place, write: bool, seed: int) -> Workload:
    """The first requests of each part, part after part."""
    random = np.random.default_rng(seed)
    processes = place.parts[0].offset.shape[0]
    least = min(part.request_bytes for part in place.parts)
    counts = [max(1, place.requests * least // part.request_bytes) for part in place.parts]
    kept = [(part, part.offset[:, :count]) for part, count in zip(place.parts, counts, strict=True)]
    offset = np.concatenate([each for _, each in kept], axis=1)
    size = np.concatenate([part.size[: each.shape[1]] for part, each in kept])
    start = np.cumsum(random.exponential(THINK_S * 1e9, offset.shape).astype(np.int64) + 1, axis=1)
    rows = np.zeros(offset.size, REQUEST_DTYPE)
    rows["start_ns"] = rows["end_ns"] = start.reshape(-1)
    rows["rank"] = np.repeat(np.arange(processes), offset.shape[1])
    rows["write"], rows["offset"], rows["size"] = write, offset.reshape(-1), np.tile(size, processes)
    return Workload((FileRequests(FILE, rows, _end(place)),), processes)


def _end(place: Place) -> int:
    return max(part.end for part in place.parts)


def replicas_of(
    place: Place, schemes: Sequence[str], write: bool, cluster: Cluster
) -> dict[str, tuple[Candidate, ...]]:
    """What each scheme makes; `pd` is H-PDLA's replicas in the original's layout."""
    on_disks = whole_file(cluster.hservers, STRIPE_BYTES, GIB)
    setting = Setting(cluster, {FILE: on_disks})
    patterns = tuple(accesses(part, write, number) for number, part in enumerate(place.parts))
    total = sum(each.bytes for each in patterns)
    found = Found(patterns, (), {FILE: Extent(_end(place), 0 if write else total, total if write else 0)})
    made: dict[str, tuple[Candidate, ...]] = {}
    for scheme in schemes:
        if scheme in MANAGERS:
            made[scheme] = decide(scheme, found, setting, Options()).chosen
    made["original"] = ()
    if "pd" in schemes:
        made["pd"] = tuple(replace(each, layout=on_disks) for each in made["h-pdla"])
    if "pd-file" in schemes:
        made["pd-file"] = tuple(replace(each, layout=on_disks, blocks=_in_file_order(each)) for each in made["h-pdla"])
    return {scheme: made[scheme] for scheme in schemes}


def _in_file_order(replica: Candidate) -> tuple[StridedBlocks, ...]:
    """The blocks of a replica as they follow each other in the file, not process after process."""
    start, end = Standing(replica.blocks).intervals()
    return folded(np.zeros(len(start), np.int64), start, end - start)[0]


def run_place(place: Place, schemes: Sequence[str], write: bool, seed: int) -> dict[str, tuple[float, str]]:
    """MB/s of each scheme at a point, and where its replicas are."""
    conditions = place.conditions
    cluster = cluster_of(place.parts[0].offset.shape[0], "s-pdla" in schemes, conditions)
    original = whole_file(cluster.hservers, STRIPE_BYTES, GIB)
    workload = workload_of(place, write, seed)
    on = simulated_cluster(cluster, conditions)
    found = {}
    for scheme, replicas in replicas_of(place, schemes, write, cluster).items():
        ahead = _ahead_bytes(replicas, original) if conditions.has_read_ahead and not write else 0
        choices = [(scheme, replicas)] if replicas else []
        load, layouts = workload, {FILE: original}
        if conditions.write_behind_bytes and write:
            load, layouts = _written_behind(workload, original, replicas, conditions.write_behind_bytes)
            choices = []
        runs = simulate_served(load, on, layouts, choices, Settings(seed, ahead), not choices)
        where = "; ".join(dict.fromkeys(f"{each.scheme} on {each.space}" for each in replicas))
        found[scheme] = (runs[-1].mb_s, "" if scheme.startswith("pd") else where)
    return found


def _written_behind(
    workload: Workload, original: Layout, replicas: Sequence[Candidate], most: int
) -> tuple[Workload, dict[str, Layout]]:
    """The requests as files and containers get them, those that go on written together."""
    (file,) = workload.files
    parted = served(file.requests, replicas)
    tables = {FILE: (file.size_bytes, original, parted.file)}
    for number, (each, table) in enumerate(zip(replicas, parted.containers, strict=True)):
        tables[f"{FILE}.{number}"] = (sum(part.bytes for part in each.blocks), each.layout, table)
    files = tuple(
        FileRequests(path, _together(rows, most), size) for path, (size, _, rows) in tables.items() if len(rows)
    )
    return replace(workload, files=files), {path: layout for path, (_, layout, _) in tables.items()}


def _together(rows: Requests, most: int) -> Requests:
    """Requests of a process that go on where its last one ended, as one, up to so many bytes."""
    end = rows["offset"] + rows["size"]
    goes_on = (rows["rank"][1:] == rows["rank"][:-1]) & (rows["offset"][1:] == end[:-1])
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    run = np.cumsum(np.concatenate([[False], ~goes_on]))
    chunk = (rows["offset"] - rows["offset"][begins][run]) // most
    first = np.flatnonzero(np.concatenate([[True], (run[1:] != run[:-1]) | (chunk[1:] != chunk[:-1])]))
    made = rows[first].copy()
    made["size"] = np.add.reduceat(rows["size"], first)
    return made


def _ahead_bytes(replicas: Sequence[Candidate], original: Layout) -> int:
    """What all servers of a process's data read ahead together, each its share."""
    layouts = [each.layout for each in replicas] or [original]
    return READ_AHEAD_BYTES * min(len(each.regions[0].stripes) for each in layouts)


def run_figure(
    given: Given,
    title: str,
    label: str,
    places: Sequence[Place],
    schemes: Sequence[str],
    stated: Sequence[Stated] = (),
) -> None:
    """Runs every place, reads and writes; writes result.json and result.svg."""
    each = [(place, kind) for place in places for kind in OPERATIONS]
    rows: list[dict[str, Any]] = []
    for (place, kind), found in zip(each, _run_all(each, schemes, given.seeds), strict=True):
        mb_s = {scheme: fmean(run[scheme][0] for run in found) for scheme in schemes}
        where = {scheme: found[0][scheme][1] for scheme in schemes if found[0][scheme][1]}
        rows.append({**place.keys, "operation": kind, **mb_s, "layouts": where, "tick": place.tick})
        head = " ".join(place.tick.split())
        progress(f"{head}, {kind}: " + ", ".join(f"{k} {v:.1f}" for k, v in mb_s.items()) + " MB/s, simulated")
    said = [_ordering(each, rows) for each in stated]
    for one in rows:
        del one["tick"]
        one["layouts"] = ", ".join(f"{scheme}: {text}" for scheme, text in one["layouts"].items())
    result = {
        "rows": rows,
        "simulated": True,
        "unit": "MB/s (10^6 bytes), mean over the seeds",
        "layouts": "the replicas of each scheme; pd has them in the original's layout",
        "options": given.as_json,
        **({"stated": said} if said else {}),
    }
    write_result(given.out, result)
    panels = [(k, {NAMES[s]: [r[s] for r in rows if r["operation"] == k] for s in schemes}) for k in OPERATIONS]
    draw_bars(given.out / "result.svg", title, label, [place.tick for place in places], panels)


def _run_all(
    each: Sequence[tuple[Place, str]], schemes: Sequence[str], seeds: int
) -> Iterator[list[dict[str, tuple[float, str]]]]:
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(each) * seeds)) as pool:
        waited = [
            [pool.submit(run_place, place, schemes, kind == "write", seed) for seed in range(1, seeds + 1)]
            for place, kind in each
        ]
        for futures in waited:
            yield [future.result() for future in futures]


def _ordering(stated: Stated, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the paper states beside what comes out, which it does where factors at both ends of the span are near."""
    mine = [
        gain(row[stated.of], row[stated.over])
        for row in rows
        if row["operation"] == stated.operation and (not stated.ticks or row["tick"] in stated.ticks)
    ]
    low, high = min(mine), max(mine)
    holds = _near(high, stated.high) and (stated.low is None or _near(low, stated.low))
    return {
        "key": stated.key,
        "said": stated.said,
        "holds": holds,
        "found": f"{percent(low)} to {percent(high)}",
        "published": [stated.low, stated.high],
        "ours": [low, high],
    }


def _near(mine: float, theirs: float) -> bool:
    """Whether a factor is the paper's, a quarter less to a third more."""
    return 0.75 <= (1 + mine) / (1 + theirs) <= 4 / 3
