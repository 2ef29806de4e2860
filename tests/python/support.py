"""Clusters, workloads and a slow map for the tests: what several of them need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from stripewise.cluster import Cluster, Network, Target
from stripewise.workload import REQUEST_DTYPE, FileRequests, Workload

KIB, MIB = 1 << 10, 1 << 20


def page_example() -> str:
    """The policy that docs/writing-a-policy.md shows."""
    page = (Path(__file__).parents[2] / "docs" / "writing-a-policy.md").read_text()
    return page.split("```python\n")[1].split("```")[0]


def target(
    name: str, klass: str, capacity_bytes: int = 0, startup_s: float = 0.003, per_byte_s: float = 1e-8
) -> Target:
    """One target with the same figures for reads and writes."""
    return Target(name, klass, "dir", Path("/t") / name, capacity_bytes, startup_s, startup_s, per_byte_s, per_byte_s)


def cluster(M: int, N: int, ssd_capacity: int = 0, hdd_capacity: int = 0, network: Network | None = None) -> Cluster:
    """M HDDs with 3 ms + 100 MB/s, N SSDs with 0.1 ms + 400 MB/s: the demo's devices."""
    targets = [target(f"hdd{i}", "hdd", hdd_capacity) for i in range(M)]
    targets += [target(f"ssd{i}", "ssd", ssd_capacity, 0.0001, 2.5e-9) for i in range(N)]
    return Cluster(Path("cluster.toml"), network or Network(), tuple(targets))


def file_of(offsets, sizes, writes=None, path="/data/f", size_bytes=0) -> FileRequests:
    """A file with one request per offset, in time order."""
    requests = np.zeros(len(offsets), dtype=REQUEST_DTYPE)
    requests["offset"], requests["size"] = offsets, sizes
    requests["write"] = False if writes is None else writes
    requests["start_ns"] = np.arange(len(offsets)) * 1000
    requests["end_ns"] = requests["start_ns"] + 500
    end = max((int(row["offset"] + row["size"]) for row in requests if row["size"] > 0), default=0)
    return FileRequests(path, requests, max(end, size_bytes))


def zipf_workload(regions: int, requests: int, request_bytes: int = 256 * KIB, seed: int = 1) -> Workload:
    """Aligned requests on regions of 1 MiB, region popularity Zipf 0.8, half of them writes: the demo."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, regions + 1) ** 0.8
    region = rng.permutation(regions)[rng.choice(regions, requests, p=weight / weight.sum())]
    offsets = region * MIB + rng.integers(0, MIB // request_bytes, requests) * request_bytes
    file = file_of(offsets, request_bytes, rng.random(requests) < 0.5, size_bytes=regions * MIB)
    return Workload((file,), 8)


def walk(stripes: list[tuple[str, int]], offset: int, size: int) -> dict[str, int]:
    """Bytes per target of [offset, offset + size), stripe by stripe: the slow map."""
    cycle = sum(width for _, width in stripes)
    served: dict[str, int] = {}
    at = offset
    while at < offset + size:
        start = at // cycle * cycle
        for name, width in stripes:
            if start <= at < start + width:
                take = min(start + width, offset + size) - at
                served[name] = served.get(name, 0) + take
                at += take
                break
            start += width
    return served


@st.composite
def clusters(draw) -> Cluster:
    """Any small cluster: one class or two, limited or not, uneven."""
    count = draw(st.integers(1, 6))
    targets = []
    for number in range(count):
        capacity = draw(st.one_of(st.just(0), st.integers(1, 8 * MIB)))
        klass = draw(st.sampled_from(["hdd", "ssd", "swd", "any"]))
        startup_s = draw(st.floats(0, 0.01))
        targets.append(target(f"t{number}", klass, capacity, startup_s, draw(st.floats(0, 1e-7))))
    return Cluster(Path("cluster.toml"), Network(draw(st.floats(0, 1e-3)), draw(st.floats(0, 1e-8)), 2), tuple(targets))


@st.composite
def workloads(draw) -> Workload:
    """A few files with a few requests each, aligned or not, some regions untouched."""
    files = []
    for number in range(draw(st.integers(1, 2))):
        rows = draw(
            st.lists(st.tuples(st.integers(0, 6 * MIB), st.integers(0, MIB), st.booleans()), min_size=1, max_size=12)
        )
        offsets, sizes, writes = zip(*rows, strict=True)
        files.append(file_of(offsets, sizes, writes, f"/data/f{number}", draw(st.integers(0, 8 * MIB))))
    return Workload(tuple(files), draw(st.integers(1, 16)))
