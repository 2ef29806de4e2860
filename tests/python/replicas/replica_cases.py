"""Patterns and clusters for tests of the managers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from stripewise.cluster import Cluster, Network
from stripewise.replicas import Accesses, Setting
from support import KIB, MIB, cluster, target


def fusion(processes_per_node=1):
    """RADAR, Table II: eight I/O servers."""
    return Cluster(
        Path("fusion"),
        Network(32.9e-6, 0.00112e-6, processes_per_node),
        tuple(target(f"d{number}", "hdd", 0, 6.20e-3, 0.0212e-6) for number in range(8)),
    )


def emulated(on):
    """The same with emulated targets, whose accesses wait for themselves."""
    return replace(on, targets=tuple(replace(each, kind="emulated") for each in on.targets))


def setting(M=4, N=2, **sizes):
    """Disks of 3 ms and 100 MB/s, SSDs of 0.1 ms and 400 MB/s."""
    return Setting(cluster(M, N, network=Network(1e-5, 1e-9, 1), **sizes))


def accesses(rows, file="/d/f", start_ns=0, is_global=None):
    """The pattern of (rank, op, offset, bytes), each rank's in its order."""
    rows = sorted(rows, key=lambda row: row[0])
    clients = np.array([row[0] for row in rows], dtype=np.int64)
    return Accesses(
        file,
        f"{len(rows)} requests.",
        len(set(clients.tolist())) > 1 if is_global is None else is_global,
        clients,
        np.array([row[1] == "write" for row in rows]),
        np.array([row[2] for row in rows], dtype=np.int64),
        np.array([row[3] for row in rows], dtype=np.int64),
        start_ns,
    )


def columns(ranks, block, rows, op="read", base=0, **options):
    """Each rank's column of a matrix: blocks side by side, one of each rank in a row."""
    return accesses(
        [(r, op, base + (k * ranks + r) * block, block) for r in range(ranks) for k in range(rows)], **options
    )


def strided(ranks, request, stride, count, op="read", base=0, **options):
    """IOR's fixed stride: each rank in a part of its own."""
    part = stride * count
    return accesses(
        [(r, op, base + r * part + k * stride, request) for r in range(ranks) for k in range(count)], **options
    )


@st.composite
def any_rows(draw, op=None):
    """A few requests of a few ranks near each other, so that they overlap, repeat and touch."""
    grain = draw(st.sampled_from([1, 7, 64]))
    return [
        (
            draw(st.integers(0, 2)),
            op or draw(st.sampled_from(["read", "write"])),
            draw(st.integers(0, 40)) * grain,
            draw(st.integers(1, 9)) * grain,
        )
        for _ in range(draw(st.integers(1, 14)))
    ]


@st.composite
def nests(draw, gap=0):
    """Loops of strides whose blocks do not overlap, so far apart at least, in any order: base, block, dims."""
    block = draw(st.integers(1, 100))
    reach, dims = block, []
    for _ in range(draw(st.integers(0, 8))):
        count = draw(st.integers(2, 3))
        stride = reach + gap + draw(st.integers(0, 50))
        dims.append((stride, count))
        reach += stride * (count - 1)
    return draw(st.integers(0, 1000)), block, tuple(draw(st.permutations(dims)))


@st.composite
def several_patterns(draw, op=None):
    """Regular patterns of one or two files, at various times."""
    made = []
    for number in range(draw(st.integers(1, 6))):
        ranks, count = draw(st.sampled_from([1, 2, 5])), draw(st.integers(1, 6))
        request = draw(st.sampled_from([512, 16 * KIB, 100_000, MIB]))
        make = draw(st.sampled_from([lambda *a, **o: columns(a[0], a[1], a[3], **o), strided]))
        made.append(
            make(
                ranks,
                request,
                request * draw(st.integers(1, 4)),
                count,
                op=op or draw(st.sampled_from(["read", "write"])),
                base=draw(st.integers(0, 3)) * 64 * KIB,
                file=draw(st.sampled_from(["/d/f", "/d/g"])),
                start_ns=number * draw(st.sampled_from([1, 10**9])),
            )
        )
    return made


def bytes_of(candidate):
    """The logical bytes of a candidate's blocks, in their order."""
    return [at + byte for part in candidate.blocks for at in part.offsets().tolist() for byte in range(part.block)]


def decomposition(kind, clients, edge=64, element=2048):
    """A volume as large as one of RADAR's array (section III.B), or what `time` reads of two, contiguous in z, y, x."""

    def block(client, times, x, y, z):
        t, i, j = np.meshgrid(np.arange(*times), np.arange(*x), np.arange(*y), indexing="ij")
        offset = ((((t * edge) + i) * edge + j) * edge + z[0]).reshape(-1) * element
        return np.full(len(offset), client), offset, np.full(len(offset), (z[1] - z[0]) * element)

    def share(number, parts):
        return number * edge // parts, (number + 1) * edge // parts

    whole, half, parts = (0, edge), (0, edge // 2), []
    side = next(number for number in range(1, edge) if number**3 >= clients)
    for r in range(clients):
        if kind == "row":
            parts.append(block(r, (0, 1), share(r, clients), whole, whole))
        elif kind == "column":
            parts.append(block(r, (0, 1), whole, whole, share(r, clients)))
        elif kind == "time":
            parts.append(block(r, (2 * r, 2 * r + 2), half, half, (0, edge // 4)))
        else:
            # More cubes than clients: in turn.
            cubes = np.array(np.unravel_index(np.arange(r, side**3, clients), (side,) * 3)).T
            parts += [block(r, (0, 1), *(share(place, side) for place in cube)) for cube in cubes.tolist()]
    client, offset, size = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return Accesses("/d/f", f"{kind} of {clients}.", True, client, np.zeros(len(client), bool), offset, size)
