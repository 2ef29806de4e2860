"""Patterns from traces and by hand: which processes act together, and what has no pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replica_cases import emulated
from runs import write_rows
from stripewise.errors import UsageError
from stripewise.pattern import report_as_asked, report_of
from stripewise.replicas import Setting, accesses_of, by_hand
from stripewise.replicas.accesses import Extent
from support import KIB, MIB, cluster

#: Places of ranks that no formula gives.
ODD = (5, 0, 11, 7, 2, 14)


def found_in(tmp_path, rows):
    return accesses_of(report_of(write_rows(tmp_path / "t", rows)))


def test_ranks_whose_places_follow_a_formula_are_a_global_pattern(tmp_path):
    rows = [(r, "read", "/d/f", (k * 4 + r) * 16 * KIB, 16 * KIB) for k in range(32) for r in range(4)]
    (pattern,) = found_in(tmp_path, rows).patterns
    assert pattern.is_global and pattern.processes == 4 and pattern.operation == "read"
    assert pattern.client.tolist() == [0] * 32 + [1] * 32 + [2] * 32 + [3] * 32
    assert pattern.offset[:3].tolist() == [0, 64 * KIB, 128 * KIB]
    assert pattern.words.startswith("Each of 4 ranks reads 32 small requests of 16 KiB strided")


def test_a_rank_that_does_something_else_has_a_local_pattern(tmp_path):
    rows = [(r, "write", "/d/f", (r * 16 + k) * MIB, MIB) for r in range(3) for k in range(16)]
    rows += [(3, "read", "/d/f", k * 8 * MIB, 4 * KIB) for k in range(5)]
    found = found_in(tmp_path, rows)
    assert [(each.is_global, each.processes, each.operation) for each in found.patterns] == [
        (True, 3, "write"), (False, 1, "read"),
    ]  # fmt: skip
    assert found.extents == {"/d/f": Extent(48 * MIB, 5 * 4 * KIB, 48 * MIB)}


def test_ranks_without_a_formula_that_stay_apart_are_local_patterns(tmp_path):
    rows = [(r, "read", "/d/f", (ODD[r] * 100 + 2 * k) * MIB, 64 * KIB) for k in range(8) for r in range(6)]
    assert [each.processes for each in found_in(tmp_path, rows).patterns] == [1] * 6


def test_ranks_without_a_formula_that_interleave_are_a_global_pattern(tmp_path):
    rows = [(r, "read", "/d/f", ODD[r] * 64 * KIB + k * MIB, 64 * KIB) for k in range(8) for r in range(6)]
    assert [each.processes for each in found_in(tmp_path, rows).patterns] == [6]


def test_random_requests_follow_no_pattern(tmp_path):
    chance = np.random.default_rng(5)
    rows = [(0, "read", "/d/f", int(at) * 4 * KIB, 4 * KIB) for at in chance.permutation(3000)]
    found = found_in(tmp_path, rows)
    assert not found.patterns and {reason for _, _, reason, _ in found.without} == {"random requests follow no pattern"}


def behind_views(place):
    """Two ranks write 512 KiB together, by rank 0, and read 64 KiB of it each in blocks of 4 KiB, sieved."""
    rows = [(r, "mpi_write", "/d/f", r * 256 * KIB, 256 * KIB) for r in range(2)]
    rows += [(0, "write", "/d/f", 0, 512 * KIB)]
    calls = len(rows)
    for r in range(2):
        rows += [(r, "mpi_read", "/d/f", (2 * k + r) * 4 * KIB, 4 * KIB) for k in range(16)]
        rows += [(r, "read", "/d/f", 0, 64 * KIB), (r, "read", "/d/f", 64 * KIB, 64 * KIB)]
    write_rows(place, rows)
    table = pq.read_table(place / "trace.parquet")
    start = np.arange(len(rows)) * 1000
    for r in range(2):
        # The ranges of a call have its times, and so have the reads that it makes.
        start[calls + 18 * r : calls + 18 * r + 18] = (calls + r) * 1000
    for name, times in (("start_ns", start), ("end_ns", start + 1000)):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(times, pa.int64()))
    pq.write_table(table, place / "trace.parquet")
    return accesses_of(report_as_asked(place))


def test_what_the_mpi_library_makes_of_calls_is_what_the_file_is_asked(tmp_path):
    """Writes are those of the process that does them; reads behind views cost what their sieved reads do."""
    found = behind_views(tmp_path / "t")
    wrote = found.extents["/d/f"].writes
    assert [each.tolist() for each in (wrote.client, wrote.offset, wrote.size)] == [[0], [0], [512 * KIB]]
    (read,) = [each for each in found.patterns if each.operation == "read"]
    assert len(read.offset) == 32 and read.below is not None
    assert [each.tolist() for each in (read.below.client, read.below.offset, read.below.size)] == [
        [0, 0, 1, 1], [0, 64 * KIB] * 2, [64 * KIB] * 4,
    ]  # fmt: skip
    where = Setting(emulated(cluster(2, 0)))
    # Four reads of a stripe each, two on each disk, and no read for each block.
    assert where.original_s(read) < 4 * 3e-3 + 256 * KIB * 2e-8 < where.original_s(replace(read, below=None))
    assert {len(np.unique(read.below.call[read.client == rank])) for rank in range(2)} == {1}
    twice = read.joined(read)
    assert twice.below is not None and len(twice.below.size) == 8 and len(np.unique(twice.below.call)) == 4
    assert read.joined(replace(read, below=None)).below is None


def test_reads_behind_views_are_found_by_call(tmp_path):
    views = behind_views(tmp_path / "t").views["/d/f"]
    assert views.call.tolist() == [0] * 16 + [1] * 16 and views.rank.tolist() == views.call.tolist()
    start = views.start_ns[views.first]
    asked = np.array([start[0], start[0], start[1], start[0] - 5000])
    assert views.call_of(np.array([0, 2, 1, 0]), asked).tolist() == [0, -1, 1, -1]


def test_a_pattern_by_hand_deals_its_outer_loop_out_to_processes():
    made = by_hand("/d/f,with,commas,read:1MiB:4KiB:64KiBx4:8KiBx2@2")
    assert made.file == "/d/f,with,commas" and made.operation == "read" and made.processes == 2
    rounds = [[MIB + k * 64 * KIB + j * 8 * KIB for j in range(2)] for k in range(4)]
    assert made.offset.tolist() == [*rounds[0], *rounds[2], *rounds[1], *rounds[3]]
    assert made.client.tolist() == [0] * 4 + [1] * 4 and (made.size == 4 * KIB).all()
    assert made.words == "By hand: 2 processes read 4 KiB, 4 every 64 KiB, then 2 every 8 KiB, from 1 MiB on."
    assert by_hand("/d/f,write:0:1MiB").size.tolist() == [MIB]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/d/f", "is none; write FILE,read:BASE:BLOCK"),
        ("/d/f,copy:0:4KiB", "is none; write"),
        ("/d/f,read:0:0", "no block"),
        ("/d/f,read:0:4KiB:1MiBx4@5", "no round of its outer loop for a process"),
        ("/d/f,read:0:4KiB:1MiBx9999999", "more than 4,194,304"),
        ("/d/f,read:0:4KiB:2000000TiBx400", "beyond 2^62"),
        ("/d/f,read:0:4KiB:much x4", "--pattern: STRIDE: 'much ' is not a size"),
    ],
)
def test_a_pattern_by_hand_that_is_none_says_how_to_write_it(text, said):
    with pytest.raises(UsageError) as error:
        by_hand(text)
    assert said in str(error.value)
