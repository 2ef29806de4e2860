"""Random instances by number: a cluster, and any number of runs of one program on it.

The structure (servers, files, which places are hot) is drawn from the number alone; what a run asks for is drawn from
the number and the run's seed. So a plan made from one run can be held against others of the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stripewise.cluster import Cluster, Network, Target
from stripewise.cluster.device import Device
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload

KIB, MIB = 1 << 10, 1 << 20
PAGE = 4 * KIB
Int = NDArray[np.int64]
#: Offsets and sizes of `count` requests of one phase, in the order of the ranks' own sequences.
Draw = Callable[[np.random.Generator, int], tuple[Int, Int]]


@dataclass(frozen=True)
class FileOf:
    """One file: its bytes, its share of the requests, the part of them that are writes, and a pattern per phase."""

    size_bytes: int
    share: float
    writes: float
    kind: str
    phases: tuple[Draw, ...]


@dataclass(frozen=True)
class Instance:
    """One instance: `requests_each` requests of every process, dealt among the files by their shares."""

    number: int
    targets: tuple[Target, ...]
    files: tuple[FileOf, ...]
    processes: int
    requests_each: int

    @cached_property
    def cluster(self) -> Cluster:
        """Its targets, without a network."""
        return Cluster(Path(f"instance-{self.number}.toml"), Network(), self.targets)

    def workload(self, seed: int) -> Workload:
        """The run with this seed: every process asks without thinking, phase after phase."""
        rng = np.random.default_rng((self.number, seed))
        total = self.processes * self.requests_each
        file_of = rng.choice(len(self.files), total, p=[file.share for file in self.files])
        made = []
        for number, file in enumerate(self.files):
            at = np.flatnonzero(file_of == number)
            # Request n of all is the (n // processes)-th of process n % processes.
            phase = at * len(file.phases) // total
            requests = np.zeros(len(at), dtype=REQUEST_DTYPE)
            for each, draw in enumerate(file.phases):
                chosen = phase == each
                requests["offset"][chosen], requests["size"][chosen] = draw(rng, int(chosen.sum()))
            requests["rank"] = at % self.processes
            requests["start_ns"] = at // self.processes * 1000
            requests["end_ns"] = requests["start_ns"] + 1000
            requests["write"] = rng.random(len(at)) < file.writes
            made.append(FileRequests(f"/data/{number}", requests, file.size_bytes))
        return Workload(tuple(made), self.processes, f"instance {self.number}, run {seed}")


def instance(number: int) -> Instance:
    """The instance of this number."""
    rng = np.random.default_rng(number)
    files = _files(rng)
    targets = _targets(rng, sum(file.size_bytes for file in files))
    processes = int(np.round(2 ** rng.uniform(2, 8)))
    total = int(2 ** rng.uniform(11, 15.3))
    return Instance(number, targets, files, processes, max(1, total // processes))


# The servers ----------------------------------------------------------------------------------------------------------


def _targets(rng: np.random.Generator, data_bytes: int) -> tuple[Target, ...]:
    """2 to 40 servers of two or three classes; the swift ones may be small, the others hold all data."""
    many = int(np.round(2 ** rng.uniform(1, np.log2(40))))
    classes = 3 if many >= 3 and rng.random() < 0.35 else 2
    counts = 1 + rng.multinomial(many - classes, rng.dirichlet(np.ones(classes)))
    discount = float(rng.choice([0.0, 0.0, 0.5, 1.0]))
    room = _room(rng, data_bytes, int(counts[1:].sum()))
    targets = []
    for klass, count in enumerate(counts.tolist()):
        startup_s, per_byte_s, channels = _figures(rng, klass)
        write_s = startup_s * float(rng.choice([1.0, 1.0, 0.5, 2.0]))
        for number in range(count):
            device = Device(channels=channels, sequential_discount=discount)
            name = f"{('hdd', 'ssd', 'nvme')[klass]}{number}"
            targets.append(
                Target(
                    name, "ssd" if klass else "hdd", "dir", Path("/t") / name, room if klass else 0,
                    startup_s, write_s, per_byte_s, per_byte_s, device=device,
                )
            )  # fmt: skip
    return tuple(targets)


def _figures(rng: np.random.Generator, klass: int) -> tuple[float, float, int]:
    """Seconds of a startup, seconds per byte, and channels."""
    if klass == 0:
        return float(rng.uniform(2e-3, 12e-3)), 1 / float(rng.uniform(60e6, 250e6)), 1
    channels = int(2 ** rng.integers(0, 4))
    return float(2e-5 * 10 ** rng.uniform(0, 1)), 1 / float(2e8 * 10 ** rng.uniform(0, 1.2)) * channels**0.5, channels


def _room(rng: np.random.Generator, data_bytes: int, servers: int) -> int:
    """Capacity of each swift server: none said, a part of the data, or a whole number of MiB that fits exactly."""
    kind = rng.choice(["any", "part", "part", "exact"])
    if kind == "any":
        return 0
    wanted = max(PAGE, int(data_bytes * rng.uniform(1 / 16, 0.75)) // servers)
    if kind == "part":
        return wanted // PAGE * PAGE + 16 * PAGE
    return holding(max(1, wanted // MIB) * MIB)


def holding(usable_bytes: int) -> int:
    """The least capacity, in pages, that a plan may fill with so many bytes."""
    low, high = usable_bytes // PAGE, usable_bytes // PAGE * 2 + 16
    while low < high:
        middle = (low + high) // 2
        target = Target("t", "ssd", "dir", Path("/t"), middle * PAGE, 0.0, 0.0, 0.0, 0.0)
        if target.usable_bytes >= usable_bytes:
            high = middle
        else:
            low = middle + 1
    return low * PAGE


# What is asked for ----------------------------------------------------------------------------------------------------


def _files(rng: np.random.Generator) -> tuple[FileOf, ...]:
    count = int(rng.choice([1, 1, 2, 3, 5]))
    shares = rng.dirichlet(np.full(count, 2.0))
    return tuple(_file(rng, float(share)) for share in shares)


def _file(rng: np.random.Generator, share: float) -> FileOf:
    size = int(2 ** rng.uniform(5, 10.3)) * MIB
    kind = str(rng.choice(sorted(PATTERNS)))
    phases = 1 if rng.random() < 0.7 else int(rng.integers(2, 4))
    draws = PATTERNS[kind](rng, size, phases)
    return FileOf(size, share, float(rng.choice([0.0, 0.0, 0.3, 1.0])), kind, draws)


def _request(rng: np.random.Generator) -> int:
    return PAGE << int(rng.integers(0, 9))


def _zipf(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """Cells of any grain, popular by a Zipf law in any order; the requests in a cell fall anywhere on their grid."""
    request = _request(rng)
    grain = max(request, PAGE << int(rng.integers(0, 11)))
    cells = max(1, size // grain)
    popular = 1 / np.arange(1, cells + 1) ** rng.uniform(0.5, 1.5)
    order = rng.permutation(cells)

    def phase(shift: int) -> Draw:
        def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
            rank = run.choice(cells, count, p=popular / popular.sum())
            cell = order[(rank + shift) % cells]
            inner = run.integers(0, grain // request, count)
            return cell * grain + inner * request, np.full(count, request)

        return draw

    step = int(rng.integers(0, cells))
    return tuple(phase(number * step) for number in range(phases))


def _strided(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """Records of one size with gaps of one size between them, in any order."""
    request = _request(rng)
    stride = request * int(rng.integers(2, 17))
    records = max(1, size // stride)

    def phase(first: int) -> Draw:
        def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
            return run.integers(0, records, count) * stride + first * request, np.full(count, request)

        return draw

    return tuple(phase(number % (stride // request)) for number in range(phases))


def _nested(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """Records with a short header that is asked for more often than the whole."""
    head = _request(rng)
    record = head * int(2 ** rng.integers(2, 7))
    records = max(1, size // record)
    whole = float(rng.uniform(0.05, 0.6))

    def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
        sizes = np.where(run.random(count) < whole, min(record, size), head)
        return run.integers(0, records, count) * record, sizes

    return (draw,) * phases


def _uniform(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """Everywhere alike, aligned or not."""
    request = _request(rng)
    grid = request if rng.random() < 0.6 else 512

    def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
        return run.integers(0, (size - request) // grid + 1, count) * grid, np.full(count, request)

    return (draw,) * phases


def _spots(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """A few hot spans that begin anywhere, the rest lukewarm; two sizes of requests."""
    request = _request(rng)
    large = min(size // 4, request * int(rng.choice([1, 4, 16])))
    spots = int(rng.integers(1, 9))
    length = max(large, int(size * rng.uniform(0.002, 0.1)) // spots)
    heat = float(rng.uniform(0.5, 0.98))

    def phase(start: Int) -> Draw:
        def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
            sizes = np.where(run.random(count) < 0.3, large, request)
            hot = start[run.integers(0, spots, count)] + run.integers(0, length, count)
            offset = np.where(run.random(count) < heat, hot, run.integers(0, size, count)) // 512 * 512
            return np.minimum(offset, size - sizes), sizes

        return draw

    return tuple(phase(rng.integers(0, max(1, size - length), spots)) for _ in range(phases))


def _sequential(rng: np.random.Generator, size: int, phases: int) -> tuple[Draw, ...]:
    """Streams that go through their own parts of the file side by side; the next one begins where its part does."""
    request = _request(rng)
    streams = int(2 ** rng.integers(0, 6))
    part = max(request, size // streams // request * request)

    def draw(run: np.random.Generator, count: int) -> tuple[Int, Int]:
        turn = np.arange(count)
        stream = (turn % streams) % max(1, size // part)
        return np.minimum(stream * part + turn // streams * request % part, size - request), np.full(count, request)

    return (draw,) * phases


PATTERNS: dict[str, Callable[[np.random.Generator, int, int], tuple[Draw, ...]]] = {
    "zipf": _zipf,
    "strided": _strided,
    "nested": _nested,
    "uniform": _uniform,
    "spots": _spots,
    "sequential": _sequential,
}
