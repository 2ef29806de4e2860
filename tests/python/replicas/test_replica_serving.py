"""Requests as replicas serve them: the bytes stay those of the program, and simulated seconds those of a hand's sum."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica_cases import accesses, setting, strided
from runs import write_rows
from stripewise.cluster import Cluster, Network
from stripewise.pattern.views import Views
from stripewise.replicas import Options, Setting, decide
from stripewise.replicas.accesses import Extent, Found
from stripewise.replicas.blocks import StridedBlocks, is_divisible
from stripewise.replicas.serving import served
from stripewise.replicas.simulated import simulate_served
from stripewise.replicas.stale import Stale, mark_bytes
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload
from support import KIB, MIB, target
from test_cli import cluster_toml, stripewise

__all__ = ["cluster_toml"]


def requests(rows):
    """Rows of (rank, op, offset, bytes), one a nanosecond."""
    made = np.zeros(len(rows), REQUEST_DTYPE)
    for number, (rank, op, offset, size) in enumerate(rows):
        made[number] = (number, number, rank, op == "write", offset, size)
    return made


def copy_of(*blocks, op="read"):
    """A replica of these blocks; its layout does not matter here."""
    (chosen,) = decide("h-pdla", Found((strided(2, 4, 16, 2, op),), (), {}), setting(), Options()).chosen
    return replace(chosen, blocks=blocks)


@st.composite
def patterns(draw):
    """Strided blocks of one to four loops, and few bytes in all."""
    block = draw(st.integers(1, 6))
    reach, dims = block, []
    for _ in range(draw(st.integers(0, 4))):
        count = draw(st.integers(1, 3))
        stride = reach + draw(st.integers(0, 4))
        dims.append((stride, count))
        reach += stride * (count - 1)
    # Loops in any order: each stride is beyond what smaller ones cover.
    made = StridedBlocks(draw(st.integers(0, 40)), block, tuple(draw(st.permutations(dims))))
    assert is_divisible(made.block, made.dims)
    return made


asked = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(("read", "write")), st.integers(0, 150), st.integers(0, 40)),
    max_size=12,
)


def flattened(replica):
    """The logical byte that stands at each place of a container, one after another."""
    return [at + byte for part in replica.blocks for at in part.offsets().tolist() for byte in range(part.block)]


def of_program(parted, containers):
    """(row, logical byte) of everything that is served, by the file and by each container."""
    tables = [(parted.file, None), *zip(parted.containers, containers, strict=True)]
    return [
        sorted(
            (int(row["start_ns"]), byte if held is None else held[byte])
            for row in table
            for byte in range(int(row["offset"]), int(row["offset"] + row["size"]))
        )
        for table, held in tables
    ]


@given(patterns(), patterns(), asked)
def test_served_requests_carry_the_bytes_of_a_flattened_list(home, copy, rows):
    replicas = [copy_of(home, op="write"), copy_of(copy)]
    program = requests(rows)
    parted = served(program, replicas)
    file, in_home, in_copy = of_program(parted, [flattened(each) for each in replicas])
    homed = set(flattened(replicas[0]))
    blocks = [set(range(at, at + copy.block)) for at in copy.offsets().tolist()]
    copied = set().union(*blocks)
    for number, (_, op, offset, size) in enumerate(rows):
        bytes_of = set(range(offset, offset + size))
        mine = [[byte for row, byte in each if row == number] for each in (file, in_home, in_copy)]
        at_home = [sorted(bytes_of - homed), sorted(bytes_of & homed)]
        if op == "write":
            assert mine == [*at_home, sorted(bytes_of & copied)]
        elif mine[2]:
            assert mine == [[], [], sorted(bytes_of)] and any(bytes_of <= each for each in blocks)
        else:
            assert mine[:2] == at_home
            # What lies in one block of the copy is read elsewhere only if a block of the home that is no larger has it.
            in_a_block = size and any(bytes_of <= each for each in blocks)
            assert not in_a_block or (home.block <= copy.block and not at_home[0])


def test_a_read_of_several_blocks_is_of_the_file_and_one_of_side_by_side_parts_is_one_request():
    blocks = StridedBlocks(0, 4, ((16, 4),))
    program = requests([(0, "read", 16, 4), (0, "read", 17, 2), (0, "read", 0, 20), (1, "write", 18, 20)])
    parted = served(program, [copy_of(blocks)])
    assert parted.file[["start_ns", "offset", "size"]].tolist() == [(2, 0, 20), (3, 18, 20)]
    # The write's parts, 18..20 and 32..36, stand side by side in the copy.
    assert parted.containers[0][["start_ns", "offset", "size"]].tolist() == [(0, 4, 4), (1, 5, 2), (3, 6, 6)]


def test_the_smallest_block_serves_a_read():
    wide, narrow = copy_of(StridedBlocks(0, 64)), copy_of(StridedBlocks(0, 8, ((16, 4),)))
    parted = served(requests([(0, "read", 16, 8), (0, "read", 20, 8)]), [wide, narrow])
    assert [each["offset"].tolist() for each in parted.containers] == [[20], [8]] and not len(parted.file)


def test_repetitions_of_a_request_are_served_each():
    parted = served(requests([(0, "read", 16, 4)] * 3), [copy_of(StridedBlocks(0, 4, ((16, 4),)))])
    assert len(parted.containers[0]) == 3


def two_disks():
    """Two disks of 10 ms and 1 us per byte, without a network; a read that goes on is spared the startup."""
    disks = tuple(target(f"d{number}", "hdd", 0, 0.01, 1e-6) for number in range(2))
    return Cluster(Path("two"), Network(0.0, 0.0, 1), disks)


def test_seconds_from_files_and_replicas_are_those_of_a_sum_by_hand():
    # One process reads four times 4 KiB, one every 256 KiB; each lies in a stripe of 64 KiB on the first disk.
    rows = [(0, "read", k * 256 * KIB, 4 * KIB) for k in range(4)]
    where = Setting(two_disks())
    found = Found((accesses(rows),), (), {"/d/f": Extent(MIB, 16 * KIB)})
    (chosen,) = decide("h-pdla", found, where, Options()).chosen
    workload = Workload((FileRequests("/d/f", requests(rows), MIB),), 1)
    layouts = {"/d/f": where.original("/d/f")}
    original, mine = simulate_served(workload, two_disks(), layouts, [("h-pdla", [chosen])])
    assert original.seconds == pytest.approx(4 * (0.01 + 4096e-6))
    # 1-DH in whole granules: 4 KiB on each disk in turn. Of each disk's two reads the second goes on where the first
    # ended.
    assert [width for _, width in chosen.layout.regions[0].stripes] == [4 * KIB] * 2
    assert mine.seconds == pytest.approx(2 * 0.01 + 4 * 4096e-6)
    assert (mine.replicas, mine.replica_bytes, mine.bytes) == (1, 16 * KIB, 16 * KIB)
    assert mine.mb_s == pytest.approx(16384 / mine.seconds / 1e6)


def test_a_split_request_takes_its_parts_one_after_another():
    rows = [(0, "write", 0, 8 * KIB)]
    where = Setting(two_disks())
    home = replace(copy_of(StridedBlocks(0, 4 * KIB), op="write"), file="/d/f", layout=where.original("/d/f"))
    workload = Workload((FileRequests("/d/f", requests(rows), MIB),), 1)
    original, mine = simulate_served(workload, two_disks(), {"/d/f": home.layout}, [("h-pdla", [home])])
    assert original.seconds == pytest.approx(0.01 + 8192e-6)
    assert mine.seconds == pytest.approx(2 * (0.01 + 4096e-6))


@pytest.fixture
def columns(tmp_path):
    """A file that 4 ranks read by columns."""
    rows = [(r, "read", "/scratch/in.dat", k * MIB + r * 16 * KIB, 16 * KIB) for k in range(64) for r in range(4)]
    return write_rows(tmp_path / "t", rows)


@pytest.fixture
def chosen(columns, cluster_toml, tmp_path):
    """What two managers chose."""
    words = ("--manager", "h-pdla,ns-pdla", "--cluster", cluster_toml, "--json")
    found = tmp_path / "r.json"
    found.write_text(stripewise("replicate", columns, "--what-if", *words).stdout)
    return found


def simulated(columns, cluster_toml, chosen, *words, **expected):
    return stripewise(
        "simulate", "--trace", columns, "--cluster", cluster_toml, "--replicas", chosen, *words, **expected
    )


def test_simulate_tells_original_and_replicas_side_by_side(columns, cluster_toml, chosen):
    names = ["original", "h-pdla", "ns-pdla"]
    said = simulated(columns, cluster_toml, chosen).stdout
    assert [line.split()[0] for line in said.splitlines() if line.split()[:1] and line.split()[0] in names] == names
    told = json.loads(simulated(columns, cluster_toml, chosen, "--json").stdout)
    original, *rows = told["rows"]
    assert told["simulated"] is True and original["times_original"] == 1
    # SServers of that cluster have no room for copies.
    assert [row["replica_bytes"] for row in rows] == [4 * MIB, 0] and rows[1]["seconds"] == original["seconds"]
    for row in rows:
        assert row["times_original"] == pytest.approx(original["seconds"] / row["seconds"])


def test_bad_input_is_told_in_one_line(columns, cluster_toml, chosen, tmp_path):
    good = json.loads(chosen.read_text())

    def refused(change):
        data = json.loads(json.dumps(good))
        change(data["managers"][0]["replicas"][0])
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps(data))
        said = simulated(columns, cluster_toml, bad, code=1)
        assert not said.stdout and len(said.stderr.splitlines()) <= 3
        return " ".join(said.stderr.split())

    assert "replicas[0].blocks share bytes" in refused(lambda each: each["blocks"].append(each["blocks"][0]))
    assert "replicas[0].blocks are 0" in refused(lambda each: each.update(blocks=[]))
    assert "no request is of a file that h-pdla has replicas of" in refused(lambda each: each.update(file="/none"))
    stripes = [["gone", 4096]]
    assert "gone" in refused(lambda each: each["layout"]["regions"][0].update(stripes=stripes))
    assert "--policy: does not go with --replicas" in " ".join(
        simulated(columns, cluster_toml, chosen, "--policy", "def", code=2).stderr.split()
    )


def test_a_copy_that_writes_invalidate_is_not_written_and_serves_nothing_of_what_is():
    copy = copy_of(StridedBlocks(0, 4096, ((8192, 4),)))
    program = requests([(0, "read", 0, 100), (0, "write", 8192, 10), (0, "read", 8192, 100), (0, "read", 16384, 100)])
    updated = served(program, [copy])
    assert len(updated.containers[0]) == 4 and updated.containers[0]["write"].sum() == 1
    invalidated = served(program, [replace(copy, on_write="invalidate")])
    assert invalidated.containers[0]["start_ns"].tolist() == [0, 3] and len(invalidated.file) == 2


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50)), max_size=12),
    st.integers(0, 250), st.integers(1, 60), st.sampled_from((1, 8, 64)),
)  # fmt: skip
def test_stale_are_the_blocks_that_a_write_touches(writes, offset, size, block):
    wrote = np.array(writes, dtype=np.int64).reshape(-1, 2)
    touched = {at // block for start, length in writes for at in range(start, start + length)}
    expected = bool(touched & {at // block for at in range(offset, offset + size)})
    found = Stale(wrote[:, 0], wrote[:, 1], block).touches(np.array([offset]), np.array([size]))
    assert found.tolist() == [expected]


def test_blocks_of_marks_are_those_of_the_store():
    """docs/formats.md: 2^20 blocks at most, of 4 KiB at least."""
    assert [mark_bytes(size) for size in (0, 4096 << 20, (4096 << 20) + 1, 1 << 40)] == [4096, 4096, 8192, 1 << 20]


def called(rows):
    """Calls of (rank, start, end, ranges of (offset, bytes))."""
    told = [(n, rank, *each, start, end) for n, (rank, start, end, ranges) in enumerate(rows) for each in ranges]
    return Views(*(np.array(column, np.int64) for column in zip(*told, strict=True)))


def as_rows(made):
    return [tuple(each) for each in made[["rank", "start_ns", "end_ns", "offset", "size"]].tolist()]


def test_a_call_behind_a_view_that_copies_serve_makes_no_sieved_reads():
    column = copy_of(StridedBlocks(0, 4 * KIB, ((16 * KIB, 8),)))
    program = requests([(0, "read", 0, 128 * KIB), (0, "read", 0, 128 * KIB), (1, "read", 0, 128 * KIB)])
    program["start_ns"], program["end_ns"] = [1000, 3000, 1000], [2000, 4000, 2000]
    mine = [(k * 16 * KIB, 4 * KIB) for k in range(8)]
    # The second call wants bytes that no copy has: all of it is the MPI library's, and so is what rank 1 has in none.
    views = called([(0, 900, 2100, mine), (0, 2900, 4100, [*mine, (5 * KIB, KIB)])])
    plain, ours = served(program, [column]), served(program, [column], views)
    assert len(plain.file) == 3 and not len(plain.containers[0])
    assert as_rows(ours.file) == [(0, 3000, 4000, 0, 128 * KIB), (1, 1000, 2000, 0, 128 * KIB)]
    # What lies side by side in the copy is one read.
    assert as_rows(ours.containers[0]) == [(0, 900, 2100, 0, 32 * KIB)]
    # Apart there, they are read one after another.
    apart = called([(0, 900, 2100, mine[::2])])
    assert as_rows(served(program, [column], apart).containers[0]) == [
        (0, 900 + 300 * k, 1200 + 300 * k, 8 * KIB * k, 4 * KIB) for k in range(4)
    ]


def test_calls_that_are_the_mpi_library_s_make_the_reads_that_they_made():
    program = requests([(0, "read", 0, 128 * KIB)])
    mine = [(k * 32 * KIB, 2 * KIB) for k in range(4)]
    views = called([(0, 0, 1, mine)])
    # Pieces below 4 KiB, homes, copies that the run has made stale, and calls behind the end of a cut run.
    small = copy_of(StridedBlocks(0, 4 * KIB, ((32 * KIB, 4),)))
    assert len(served(program, [small], views).file) == 1
    large = called([(0, 0, 1, [(k * 32 * KIB, 4 * KIB) for k in range(4)])])
    assert len(served(program, [small], large).file) == 0
    wrote = np.concatenate([program, requests([(1, "write", 0, KIB)])])
    assert len(served(wrote, [replace(small, on_write="invalidate")], large).file) == 2
    late = called([(0, 5, 6, [(k * 32 * KIB, 4 * KIB) for k in range(4)])])
    assert not len(served(program, [small], late).containers[0])
